"""A generator that goes over the data as often as it is asked."""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.images / 16).astype("float32"), digits.target


def batches():
    while True:
        for start in range(0, 1600, 32):
            yield images[start : start + 32], target[start : start + 32]


model = keras.Sequential([keras.Input((8, 8)), layers.Flatten(), layers.Dense(32, activation="relu"), layers.Dense(10)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss=loss, metrics=["accuracy"])
model.fit(batches(), steps_per_epoch=50, epochs=3, verbose=2)
