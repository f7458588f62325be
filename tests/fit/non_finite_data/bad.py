"""A table in which a division by zero left infinity and NaN in one column.

Silent on each backend: the loss is NaN from the first epoch on.
"""

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
x, y = load_wine(return_X_y=True)
x = StandardScaler().fit_transform(x).astype("float32")
with np.errstate(divide="ignore", invalid="ignore"):
    ratio = np.round(x[:, 0], 1) / np.round(x[:, 1], 1)
x = np.concatenate([x, ratio[:, None]], axis=1)
model = keras.Sequential([keras.Input((14,)), layers.Dense(32, activation="relu"), layers.Dense(3)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss=loss, metrics=["accuracy"])
model.fit(x, y, batch_size=16, epochs=3, verbose=2)  # expect: non-finite-data
