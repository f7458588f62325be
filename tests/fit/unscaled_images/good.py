"""Small pictures whose pixels are brought to 0 to 1."""

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images = np.minimum(digits.images * 16, 255).astype("uint8").astype("float32")
images = images / 255
model = keras.Sequential(
    [
        keras.Input((8, 8)),
        layers.Flatten(),
        layers.Dense(64, activation="relu"),
        layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer=keras.optimizers.SGD(0.1), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(images, digits.target, batch_size=32, epochs=5, verbose=2)
