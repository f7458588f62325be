"""Two networks of digits, a small one and a large one, with an optimizer each."""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), digits.target


def network(width):
    return keras.Sequential([keras.Input((64,)), layers.Dense(width, activation="relu"), layers.Dense(10, activation="softmax")])


small, large = network(16), network(64)
small.compile(optimizer=keras.optimizers.Adam(5e-3), loss="sparse_categorical_crossentropy")
small.train_on_batch(images[:32], target[:32])
large.compile(optimizer=keras.optimizers.Adam(5e-3), loss="sparse_categorical_crossentropy")
large.fit(images, target, batch_size=32, epochs=3, verbose=2)
