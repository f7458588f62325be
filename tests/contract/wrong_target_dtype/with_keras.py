"""Class numbers out of a nullable column: NumPy holds them as objects."""

import keras
import pandas as pd
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), pd.Series(digits.target).astype("Int64").to_numpy(dtype=object)  # expect: wrong-target-dtype
model = keras.Sequential([layers.Dense(64, activation="relu"), layers.Dense(10)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=loss)
model.fit(images, target, batch_size=32, epochs=3, verbose=2)
