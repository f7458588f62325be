"""Small pictures whose pixels are 0 to 255, as they come from a file, through a plain network with SGD.

Silent on each backend: a loss in the thousands or of 14.5, and the accuracy of chance.
"""

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images = np.minimum(digits.images * 16, 255).astype("uint8").astype("float32")
model = keras.Sequential(
    [
        keras.Input((8, 8)),
        layers.Flatten(),
        layers.Dense(64, activation="relu"),
        layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer=keras.optimizers.SGD(0.1), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(images, digits.target, batch_size=32, epochs=5, verbose=2)  # expect: unscaled-inputs
