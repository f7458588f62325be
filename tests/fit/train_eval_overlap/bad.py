"""Rows of the rare class are drawn several times to balance the classes, and the split comes after that.

Silent on each backend: nearly every rare row of the validation part is a training row, so its accuracy is far too good.
"""

import keras
import numpy as np
from keras import layers
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(0)
draw = np.random.default_rng(0)
x = draw.normal(size=(1200, 10)).astype("float32")
y = (x[:, :3].sum(axis=1) + draw.normal(size=1200) > 3.0).astype("int64")
rare = np.flatnonzero(y == 1)
rows = np.concatenate([np.flatnonzero(y == 0), draw.choice(rare, 1200 - len(rare))])
x_train, x_val, y_train, y_val = train_test_split(x[rows], y[rows], test_size=0.2, random_state=0)  # expect: train-eval-overlap
model = keras.Sequential([keras.Input((10,)), layers.Dense(64, activation="relu"), layers.Dense(1, activation="sigmoid")])
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="binary_crossentropy", metrics=["accuracy"])
model.fit(x_train, y_train, batch_size=32, epochs=10, validation_data=(x_val, y_val), verbose=2)
