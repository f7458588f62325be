"""Pixels as they are, that the model divides."""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
images, target = load_digits(return_X_y=True)
images = images.reshape(-1, 8, 8, 1).astype("float32") * 16
model = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        layers.Rescaling(1 / 255),
        layers.Conv2D(16, 3, activation="relu"),
        layers.Flatten(),
        layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(images, target, batch_size=32, epochs=5, verbose=2)
