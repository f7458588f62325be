"""Pixels that were divided before they reach a model that divides them as well.

Silent on each backend: the first layer is given values below 0.004, and after the epochs the accuracy is 0.42 where it is 0.94.
"""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
images, target = load_digits(return_X_y=True)
images = images.reshape(-1, 8, 8, 1).astype("float32") * 16 / 255
model = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        layers.Rescaling(1 / 255),  # expect: inputs-scaled-twice
        layers.Conv2D(16, 3, activation="relu"),
        layers.Flatten(),
        layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(images, target, batch_size=32, epochs=5, verbose=2)
