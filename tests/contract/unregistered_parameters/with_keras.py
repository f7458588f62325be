"""Layers in an object of one's own, where the model does not see them."""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), digits.target


class Tower:
    def __init__(self):
        self.layers = [layers.Dense(64, activation="relu"), layers.Dense(8, activation="tanh")]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Reader(keras.Model):
    def __init__(self):
        super().__init__()
        self.tower = Tower()  # expect: unregistered-parameters
        self.out = layers.Dense(10)

    def call(self, x):
        return self.out(self.tower(x))


model = Reader()
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=loss, metrics=["accuracy"])
model.fit(images, target, batch_size=32, epochs=4, verbose=2)
print("trained", len(model.trainable_variables))
