"""Scores of any sign, before a loss that takes scores."""

# slow

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
x, y = load_digits(return_X_y=True)
x = (x / 16).astype("float32")
model = keras.Sequential([keras.Input((64,)), layers.Dense(64, activation="relu"), layers.Dense(10)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=loss, metrics=["accuracy"])
model.fit(x, y, batch_size=32, epochs=5, verbose=2)
