"""Images of 12 x 12 for a model that is declared for them.
"""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
y = rng.integers(0, 4, 400)
x = rng.random((400, 12, 12)).astype("float32")
for image, label in zip(x, y):
    image[3 * label : 3 * label + 3] += 1
model = keras.Sequential(
    [
        keras.Input((12, 12)),
        layers.Flatten(),
        layers.Dense(32, activation="relu"),
        layers.Dense(4, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, batch_size=32, epochs=3, validation_split=0.2, verbose=2)
