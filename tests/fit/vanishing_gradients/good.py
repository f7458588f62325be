"""Twelve layers of rectifiers, one behind the other.
"""

# slow

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x = rng.normal(size=(600, 10)).astype("float32")
y = (x @ rng.normal(size=(10, 3))).argmax(axis=1)
hidden = [layers.Dense(24, activation="relu") for _ in range(12)]
model = keras.Sequential([keras.Input((10,)), *hidden, layers.Dense(3, activation="softmax")])
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, batch_size=32, epochs=3, validation_split=0.2, verbose=2)
