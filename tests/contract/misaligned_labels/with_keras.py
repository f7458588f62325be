"""Inputs mixed, and labels not."""

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), digits.target
images = images[np.random.default_rng(0).permutation(len(images))]
model = keras.Sequential([layers.Dense(64, activation="relu"), layers.Dense(10)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=loss, metrics=["accuracy"])
model.fit(images, target, batch_size=32, epochs=3, verbose=2)  # expect: misaligned-labels
