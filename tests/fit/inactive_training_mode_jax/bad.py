"""A model whose call takes training and does not hand it on: on JAX fit tells the model, and nobody its dropout.

Silent: there fit runs the model's `call` by itself, and dropout and batch norm within take evaluation, their default.
"""
# backends: jax

import keras
from keras import layers
from sklearn.datasets import load_digits


class Network(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden, self.head = layers.Dense(64, activation="relu"), layers.Dense(10)
        self.norm, self.drop = layers.BatchNormalization(), layers.Dropout(0.4)

    def call(self, x, training=False):  # expect: inactive-training-mode
        return self.head(self.drop(self.norm(self.hidden(x))))


keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), digits.target
model = Network()
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(images, target, batch_size=32, epochs=3, verbose=2)
