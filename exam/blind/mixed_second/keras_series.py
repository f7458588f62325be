# backends: tensorflow
"""Next-hour temperature from the last 24 readings of three sensors."""
import keras
import numpy as np
from keras import layers

SEED = 0
WINDOW = 24
keras.utils.set_random_seed(SEED)
rng = np.random.default_rng(SEED)


def sensors(n):
    t = np.arange(n)
    front = np.zeros(n)
    for i in range(1, n):
        front[i] = .9 * front[i - 1] + rng.normal(0, .8)
    temp = 12 + 5 * np.sin(2 * np.pi * t / 24) + np.roll(front, 2) + rng.normal(0, .3, n)
    pressure = 1010 - 3 * front + rng.normal(0, .5, n)
    humidity = 60 - 1.5 * (temp - 12) + rng.normal(0, 3, n)
    return np.stack([temp, pressure, humidity], 1)[8:].astype("float32")


data = sensors(4008)
n_train, n_val = 2800, 600
mean, std = data[:n_train].mean(0), data[:n_train].std(0)
scaled = (data - mean) / std
temperature = scaled[:, 0]


def windows(lo, hi, shuffle):
    part, target = scaled[lo:hi], temperature[lo:hi]
    return keras.utils.timeseries_dataset_from_array(
        part[:-WINDOW], target, sequence_length=WINDOW, batch_size=64, shuffle=shuffle, seed=SEED)


train = windows(0, n_train, True)
val = windows(n_train, n_train + n_val, False)
test = windows(n_train + n_val, len(data), False)

model = keras.Sequential([
    keras.Input((WINDOW, 3)),
    layers.Conv1D(24, 5, activation="relu", padding="causal"),
    layers.Flatten(),
    layers.Dense(48, activation="relu"),
    layers.Dense(1),
])
model.compile(keras.optimizers.Adam(2e-3), loss="mse", metrics=["mae"])
stop = keras.callbacks.EarlyStopping(monitor="val_loss", patience=3, restore_best_weights=True)
hist = model.fit(train, validation_data=val, epochs=12, callbacks=[stop], verbose=0)
for i, (a, b) in enumerate(zip(hist.history["mae"], hist.history["val_mae"])):
    print(f"epoch {i + 1:2d} mae {a:.3f} val_mae {b:.3f}")

_, mae = model.evaluate(test, verbose=0)
print(f"test MAE {mae * std[0]:.2f} degrees")

# replay the last days as the service would: predict the hour that follows each window
recent = scaled[-400:]
batch = np.stack([recent[i:i + WINDOW] for i in range(len(recent) - WINDOW)])
pred = model.predict(batch, verbose=0)[:, 0] * std[0] + mean[0]
truth = data[-400 + WINDOW:, 0]
last = data[-400 + WINDOW - 1:-1, 0]
print(f"replay MAE {np.abs(pred - truth).mean():.2f} degrees; repeating the last reading {np.abs(last - truth).mean():.2f}")
