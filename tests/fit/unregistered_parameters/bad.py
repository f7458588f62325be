"""Two networks of digits, a small one and a large one, that share one optimizer.

Keras: `Unknown variable: <Variable path=sequential_1/dense_2/kernel, …>. This optimizer can only be called for the
variables it was originally built with.`
"""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), digits.target
optimizer = keras.optimizers.Adam(5e-3)


def network(width):
    return keras.Sequential([keras.Input((64,)), layers.Dense(width, activation="relu"), layers.Dense(10, activation="softmax")])


small, large = network(16), network(64)
small.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy")
small.train_on_batch(images[:32], target[:32])
large.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy")  # expect: unregistered-parameters
large.fit(images, target, batch_size=32, epochs=3, verbose=2)
