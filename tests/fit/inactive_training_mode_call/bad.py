"""A model whose call has no argument training: fit does not tell it the mode, and its dropout never acts.

Silent on each backend: dropout drops nothing, batch norm gathers no statistics. In Keras 2 the same class trained with
both.
"""

import keras
from keras import layers
from sklearn.datasets import load_digits


class Network(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden, self.head = layers.Dense(64, activation="relu"), layers.Dense(10)
        self.norm, self.drop = layers.BatchNormalization(), layers.Dropout(0.4)

    def call(self, x):  # expect: inactive-training-mode
        return self.head(self.drop(self.norm(self.hidden(x))))


keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), digits.target
model = Network()
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(images, target, batch_size=32, epochs=3, verbose=2)
