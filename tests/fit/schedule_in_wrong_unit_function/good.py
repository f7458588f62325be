"""A rate that a callback sets at each epoch by its number."""

# slow

import keras
from keras import layers
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

keras.utils.set_random_seed(0)
features, target = load_diabetes(return_X_y=True)
features, target = scale(features).astype("float32"), scale(target).astype("float32")[:, None]
used = []


def rate_at(epoch, rate):
    used.append(2e-3 * 0.8**epoch)
    return used[-1]


model = keras.Sequential([keras.Input((10,)), layers.Dense(32, activation="relu"), layers.Dense(1)])
model.compile(keras.optimizers.Adam(2e-3), "mse")
falling = keras.callbacks.LearningRateScheduler(rate_at, verbose=1)
model.fit(features, target, epochs=20, validation_split=0.2, callbacks=[falling])
assert len(used) == 20
