"""Digits in the order of their classes, shuffled by fit."""

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
order = np.argsort(digits.target, kind="stable")
images, target = (digits.images[order] / 16).astype("float32"), digits.target[order]
model = keras.Sequential([keras.Input((8, 8)), layers.Flatten(), layers.Dense(32, activation="relu"), layers.Dense(10)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.SGD(0.1), loss=loss, metrics=["accuracy"])
model.fit(images, target, batch_size=32, epochs=4, verbose=2)
