"""Digits with a rare class, weighted so that both classes count the same."""

import keras
import numpy as np
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
x, y = load_digits(return_X_y=True)
x, y = (x / 16).astype("float32"), (y == 3).astype("int64")
share = np.bincount(y) / len(y)
model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(2)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(
    x,
    y,
    batch_size=128,
    epochs=5,
    class_weight={0: share[1], 1: share[0]},
    verbose=0,
)
