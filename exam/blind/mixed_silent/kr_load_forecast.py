# Hourly load forecast, one step ahead, Keras GRU
import os
os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(17)
rng = np.random.default_rng(17)

# two months of hourly "load" with day and week shape
hours = np.arange(24 * 70)
load = (50 + 12 * np.sin(2 * np.pi * (hours % 24) / 24 - 1.2)
        + 5 * np.sin(4 * np.pi * (hours % 24) / 24)
        - 8 * ((hours // 24) % 7 >= 5))
ar = np.zeros(len(hours))
for i in range(1, len(hours)):
    ar[i] = 0.7 * ar[i - 1] + rng.normal(0, 1.5)
load = load + ar

split, val_split = int(len(load) * 0.7), int(len(load) * 0.85)
mean, std = load[:split].mean(), load[:split].std()
series = ((load - mean) / std).astype("float32")
WINDOW = 24


def make_windows(values):
    xs, ys = [], []
    for i in range(len(values) - WINDOW):
        xs.append(values[i + 1:i + 1 + WINDOW])
        ys.append(values[i + WINDOW])
    return np.array(xs)[..., None], np.array(ys)


x_tr, y_tr = make_windows(series[:split])
x_va, y_va = make_windows(series[split:val_split])

model = keras.Sequential([
    keras.Input((WINDOW, 1)),
    layers.GRU(24),
    layers.Dense(1),
])
model.compile(optimizer=keras.optimizers.Adam(8e-3), loss="mse", metrics=["mae"])
model.fit(x_tr, y_tr, validation_data=(x_va, y_va), epochs=6, batch_size=64, verbose=2)
print(f"validation MAE: {model.evaluate(x_va, y_va, verbose=0)[1] * std:.3f}")

# replay the last weeks as in production: forecast each next hour from the 24 before it
live = series[val_split:]
idx = np.arange(WINDOW, len(live))
history = np.stack([live[i - WINDOW:i] for i in idx])[..., None]
forecast = model.predict(history, verbose=0)[:, 0]
mae = np.mean(np.abs(forecast - live[idx])) * std
naive = np.mean(np.abs(live[idx - 1] - live[idx])) * std
print(f"replay MAE: {mae:.3f}   (repeat last hour: {naive:.3f})")

target_hours = hours[val_split:][idx] % 24
for lo in (0, 6, 12, 18):
    part = (target_hours >= lo) & (target_hours < lo + 6)
    err = np.mean(np.abs(forecast[part] - live[idx][part])) * std
    print(f"  hours {lo:02d}-{lo + 5:02d}: MAE {err:.3f}")
