"""A wine's color and its kind from a PyDataset whose targets are called as the outputs."""

# slow

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
x, kind = load_wine(return_X_y=True)
x = StandardScaler().fit_transform(x).astype("float32")


class Wines(keras.utils.PyDataset):
    def __len__(self):
        return 11

    def __getitem__(self, i):
        rows = slice(16 * i, 16 * i + 16)
        return np.delete(x[rows], 9, axis=1), {"colour": x[rows, 9:10], "kind": kind[rows]}


order = np.random.default_rng(0).permutation(len(x))
x, kind = x[order], kind[order]
inputs = keras.Input((12,))
hidden = layers.Dense(32, activation="relu")(inputs)
colour = layers.Dense(1, name="colour")(hidden)
model = keras.Model(inputs, [colour, layers.Dense(3, activation="softmax", name="kind")(hidden)])
loss = {"colour": "mse", "kind": "sparse_categorical_crossentropy"}
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss=loss)
model.fit(Wines(), epochs=3, verbose=2)
