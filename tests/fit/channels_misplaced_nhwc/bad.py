"""Pictures with their channels last, for a model that declares channels first.

An error on each backend: `expected axis 1 of input shape to have value 3, but received input with shape (64,
8, 8, 3)`.
"""

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
grey = (digits.images / 16).astype("float32")
images = np.stack([grey, 1 - grey, grey**2], axis=-1)
model = keras.Sequential(
    [
        keras.Input((3, 8, 8)),
        layers.Conv2D(16, 3, activation="relu", data_format="channels_first"),
        layers.Conv2D(32, 3, activation="relu", data_format="channels_first"),
        layers.Flatten(),
        layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(images, digits.target, batch_size=64, epochs=3, verbose=2)  # expect: channels-misplaced
