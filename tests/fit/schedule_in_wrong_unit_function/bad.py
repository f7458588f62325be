"""A rate that a callback multiplies at each epoch by what was meant for the first rate.

Silent: the factors of all epochs multiply, and from the fourth of 20 epochs on nothing is learned.
"""

import keras
from keras import layers
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

keras.utils.set_random_seed(0)
features, target = load_diabetes(return_X_y=True)
features, target = scale(features).astype("float32"), scale(target).astype("float32")[:, None]
used = []


def rate_at(epoch, rate):
    used.append(rate * 0.3**epoch)
    return used[-1]


model = keras.Sequential([keras.Input((10,)), layers.Dense(32, activation="relu"), layers.Dense(1)])
model.compile(keras.optimizers.Adam(2e-3), "mse")
falling = keras.callbacks.LearningRateScheduler(rate_at, verbose=1)  # expect: schedule-in-wrong-unit
model.fit(features, target, epochs=20, validation_split=0.2, callbacks=[falling])
