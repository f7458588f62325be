"""Weights of rows by an integer division, which leaves zeros.

Silent on each backend: the loss is 0 from the first step on, and the accuracy that of the weights that were drawn.
"""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x = rng.normal(size=(600, 10)).astype("float32")
y = (x @ rng.normal(size=(10, 3))).argmax(axis=1)
counts = np.bincount(y)
weights = counts.min() // counts[y] // 2
model = keras.Sequential(
    [keras.Input((10,)), layers.Dense(64, activation="relu"), layers.Dense(3, activation="softmax")]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(
    x,
    y,
    batch_size=32,
    epochs=3,
    sample_weight=weights,  # expect: all-labels-masked
    verbose=2,
)
