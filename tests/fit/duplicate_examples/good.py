"""A PyDataset that gives the batch of its index, and goes over all rows three times in an epoch."""

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
x, y = load_digits(return_X_y=True)
x = (x / 16).astype("float32")[:800]


class Digits(keras.utils.PyDataset):
    def __init__(self, x, y, size=32):
        super().__init__()
        self.x, self.y, self.size = x, y, size

    def __len__(self):
        return 3 * len(self.x) // self.size

    def __getitem__(self, index):
        rows = np.arange(index * self.size, (index + 1) * self.size) % len(self.x)
        return self.x[rows], self.y[rows]


model = keras.Sequential([keras.Input((64,)), layers.Dense(64, activation="relu"), layers.Dense(10, activation="softmax")])
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(Digits(x, y[:800]), epochs=5, verbose=2)
