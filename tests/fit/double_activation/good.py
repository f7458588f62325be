"""Scores without activation, and a loss that applies the softmax."""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.images / 16).astype("float32"), digits.target


class Reader(keras.Model):
    def __init__(self):
        super().__init__()
        self.flat = layers.Flatten()
        self.hidden, self.out = layers.Dense(64, activation="relu"), layers.Dense(10)

    def call(self, x):
        return self.out(self.hidden(self.flat(x)))


model = Reader()
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.SGD(0.1), loss=loss, metrics=["accuracy"])
model.fit(images, target, batch_size=32, epochs=4, verbose=2)
