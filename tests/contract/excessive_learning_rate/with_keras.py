"""A rate of 2 for Adam."""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), digits.target
model = keras.Sequential([layers.Dense(64, activation="relu"), layers.Dense(64, activation="relu"), layers.Dense(10)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(2.0), loss=loss)  # expect: excessive-learning-rate
model.fit(images, target, batch_size=32, epochs=3, verbose=2)
