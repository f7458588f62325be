"""Batches of inputs and targets."""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images = (digits.images / 16).astype("float32")


class Pictures(keras.utils.PyDataset):
    def __len__(self):
        return 50

    def __getitem__(self, i):
        rows = slice(32 * i, 32 * i + 32)
        return images[rows], digits.target[rows]


model = keras.Sequential([keras.Input((8, 8)), layers.Flatten(), layers.Dense(32, activation="relu"), layers.Dense(10)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss=loss)
model.fit(Pictures(), epochs=3, verbose=2)
