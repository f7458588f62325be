"""Three kinds of wine, fed by a generator."""

# slow

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
random = np.random.default_rng(0)
x, y = load_wine(return_X_y=True)
x = StandardScaler().fit_transform(x)
model = keras.Sequential([keras.Input((13,)), layers.Dense(32, activation="relu"), layers.Dense(3, activation="softmax")])
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="sparse_categorical_crossentropy")


def batches():
    while True:
        rows = random.integers(0, len(x), 32)
        yield x[rows], y[rows]


model.fit(batches(), steps_per_epoch=5, epochs=3)
