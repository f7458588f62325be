"""Bike rental demand, next hour: past window (Conv1D) + calendar features, two inputs, Keras functional API."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import argparse
import tempfile

import keras
import numpy as np
import pandas as pd
from keras import layers, ops

WINDOW = 24


def write_csv(path, days=110, seed=0):
    rng = np.random.default_rng(seed)
    hours = pd.date_range("2024-03-01", periods=24 * days, freq="h")
    t = np.arange(len(hours))
    weekday = hours.day_of_week < 5
    shape = np.where(weekday, np.exp(-(hours.hour - 8) ** 2 / 4) + 1.3 * np.exp(-(hours.hour - 17) ** 2 / 6),
                     1.1 * np.exp(-(hours.hour - 14) ** 2 / 18))
    rain = (np.convolve(rng.normal(0, 1, len(t)), np.ones(6) / 6, "same") > 0.55).astype(int)
    rentals = 30 + 220 * shape * (1 - 0.6 * rain) * (1 + 0.15 * np.sin(t / 300)) + rng.normal(0, 8, len(t))
    pd.DataFrame({"time": hours, "rain": rain, "rentals": rentals.clip(0).round()}).to_csv(path, index=False)


def build_arrays(df):
    y = np.log1p(df.rentals.to_numpy("float32"))
    hour = df.time.dt.hour.to_numpy() * 2 * np.pi / 24
    cal = np.stack([np.sin(hour), np.cos(hour), np.sin(2 * hour), np.cos(2 * hour), df.time.dt.day_of_week >= 5,
                    df.rain], axis=1).astype("float32")
    past = np.lib.stride_tricks.sliding_window_view(y, WINDOW)[:-1]
    return past[..., None], cal[WINDOW:], y[WINDOW:]


def build_model(norm):
    past = keras.Input((WINDOW, 1), name="past")
    cal = keras.Input((6,), name="calendar")
    x = norm(past)
    x = layers.Conv1D(16, 4, activation="relu", padding="causal")(x)
    x = layers.Conv1D(16, 4, activation="relu", padding="causal", dilation_rate=4)(x)
    x = layers.Flatten()(x)
    x = layers.Concatenate()([x, layers.Dense(24, activation="relu")(cal)])
    x = layers.Dense(48, activation="relu")(x)
    x = layers.Dropout(0.05)(x)
    return keras.Model([past, cal], layers.Dense(1, bias_initializer=keras.initializers.Constant(4.0))(x))


def log_cosh_weighted(y_true, y_pred):
    # the peak hours matter most to the planners
    err = y_pred - y_true
    return ops.mean((0.5 + y_true / 5.0) * ops.log(ops.cosh(err)), axis=-1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=40)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--lr", type=float, default=4e-3)
    args = ap.parse_args()
    keras.utils.set_random_seed(3)

    path = os.path.join(tempfile.mkdtemp(), "rentals.csv")
    write_csv(path)
    df = pd.read_csv(path, parse_dates=["time"])
    past, cal, y = build_arrays(df)
    n_test, n_val = 24 * 14, 24 * 10
    tr, va, te = slice(0, len(y) - n_test - n_val), slice(len(y) - n_test - n_val, len(y) - n_test), slice(len(y) - n_test, None)

    norm = layers.Normalization(axis=None)
    norm.adapt(past[tr])
    model = build_model(norm)
    steps = args.epochs * -(-len(y[tr]) // args.batch)
    schedule = keras.optimizers.schedules.CosineDecay(args.lr / 10, steps, warmup_target=args.lr, warmup_steps=60)
    model.compile(keras.optimizers.AdamW(schedule, weight_decay=1e-4, clipnorm=1.0), loss=log_cosh_weighted)

    # recent weeks count more than old ones
    age = np.arange(len(y[tr]))[::-1] / (24 * 7)
    recency = np.exp(-age / 12)
    recency = recency / recency.mean()
    callbacks = [keras.callbacks.EarlyStopping(monitor="val_loss", patience=10, restore_best_weights=True),
                 keras.callbacks.TerminateOnNaN()]
    h = model.fit([past[tr], cal[tr]], y[tr], sample_weight=recency, validation_data=([past[va], cal[va]], y[va]),
                  epochs=args.epochs, batch_size=args.batch, callbacks=callbacks, verbose=0)
    for e in range(0, len(h.history["loss"]), 8):
        print(f"epoch {e:2d} loss {h.history['loss'][e]:.4f} val {h.history['val_loss'][e]:.4f}")

    real = np.expm1(y[te])
    pred = np.expm1(model.predict([past[te], cal[te]], verbose=0).ravel())
    day_before = np.expm1(past[te][:, 0, 0])
    r2 = 1 - ((real - pred) ** 2).sum() / ((real - real.mean()) ** 2).sum()
    print("MAE same hour yesterday %.2f" % np.abs(day_before - real).mean())
    print("MAE model %.2f  R2 %.4f" % (np.abs(pred - real).mean(), r2))


if __name__ == "__main__":
    main()
