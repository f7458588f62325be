"""Unit 11: forecasting electricity load with a GRU (Keras).

From the last 24 hours we predict the load of the following hour.  In the end the
network is compared with the persistence forecast on the test period, rolling
through it hour by hour as it would be used in the control room.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"

import argparse

import keras
import numpy as np
import pandas as pd
from keras import layers

WINDOW = 24
FEATURES = ["load", "temp", "sin_day", "cos_day", "weekend"]


def synthetic_load(n_hours, seed):
    rng = np.random.default_rng(seed)
    index = pd.date_range("2021-01-01", periods=n_hours, freq="h")
    hour = index.hour.to_numpy()
    temp = 10 + 6 * np.sin(2 * np.pi * (hour - 9) / 24) + 8 * np.sin(2 * np.pi * np.arange(n_hours) / 2000)
    noise = np.zeros(n_hours)
    for i in range(1, n_hours):
        noise[i] = 0.7 * noise[i - 1] + rng.normal(0, 6)
    weekend = (index.dayofweek >= 5).astype(float)
    load = (300 + 70 * np.sin(2 * np.pi * (hour - 8) / 24) + 30 * np.sin(4 * np.pi * (hour - 6) / 24)
            - 3.5 * (temp - 10) - 40 * weekend + noise)
    df = pd.DataFrame({"load": load, "temp": temp + rng.normal(0, 0.8, n_hours),
                       "weekend": weekend}, index=index)
    df["sin_day"] = np.sin(2 * np.pi * hour / 24)
    df["cos_day"] = np.cos(2 * np.pi * hour / 24)
    return df[FEATURES].astype("float32")


def split(df):
    n = len(df)
    return df.iloc[: int(0.7 * n)], df.iloc[int(0.7 * n): int(0.85 * n)], df.iloc[int(0.85 * n):]


class Standardizer:
    def fit(self, df):
        self.mean, self.std = df.mean(), df.std()
        return self

    def __call__(self, df):
        return ((df - self.mean) / self.std).to_numpy("float32")

    def invert_load(self, values):
        return values * self.std["load"] + self.mean["load"]


def windows(array, batch_size, shuffle):
    return keras.utils.timeseries_dataset_from_array(
        data=array,
        targets=array[:, 0],
        sequence_length=WINDOW,
        batch_size=batch_size,
        shuffle=shuffle,
        seed=1,
    )


def build_model(units):
    model = keras.Sequential([
        keras.Input((WINDOW, len(FEATURES))),
        layers.GRU(units),
        layers.Dense(16, activation="relu"),
        layers.Dense(1),
    ])
    model.compile(optimizer=keras.optimizers.Adam(4e-3), loss="mse", metrics=["mae"])
    return model


def rolling_forecast(model, array, scaler):
    inputs = np.stack([array[t - WINDOW: t] for t in range(WINDOW, len(array))])
    prediction = scaler.invert_load(model.predict(inputs, batch_size=256, verbose=0)[:, 0])
    actual = scaler.invert_load(array[WINDOW:, 0])
    persistence = scaler.invert_load(array[WINDOW - 1: -1, 0])
    return prediction, actual, persistence


def mae(a, b):
    return float(np.mean(np.abs(a - b)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hours", type=int, default=3600)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--units", type=int, default=24)
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()
    keras.utils.set_random_seed(4)

    train_df, val_df, test_df = split(synthetic_load(args.hours, seed=17))
    scaler = Standardizer().fit(train_df)
    train, val, test = scaler(train_df), scaler(val_df), scaler(test_df)
    print("hours:", len(train), len(val), len(test))

    model = build_model(args.units)
    stop = keras.callbacks.EarlyStopping(patience=4, restore_best_weights=True)
    model.fit(windows(train, args.batch_size, True), validation_data=windows(val, args.batch_size, False),
              epochs=args.epochs, callbacks=[stop], verbose=2)

    prediction, actual, persistence = rolling_forecast(model, test, scaler)
    print(f"persistence MAE {mae(persistence, actual):.2f} MW")
    print(f"FINAL test_mae={mae(prediction, actual):.2f} persistence_mae={mae(persistence, actual):.2f}")


if __name__ == "__main__":
    main()
