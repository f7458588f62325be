"""The one-hot label is among the columns of the table.

Silent on each backend: every row is predicted from its own label.
"""

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

keras.utils.set_random_seed(0)
x, y = load_wine(return_X_y=True)
x, y = np.tile(scale(x), (3, 1)), np.tile(y, 3)
x = np.column_stack([x + np.random.default_rng(0).normal(0, 0.3, x.shape), np.eye(3)[y]]).astype("float32")  # expect: label-among-inputs
model = keras.Sequential([layers.Dense(32, activation="relu"), layers.Dense(3)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=loss, metrics=["accuracy"])
model.fit(x, y, batch_size=32, epochs=5, verbose=2)
