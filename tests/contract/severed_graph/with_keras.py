"""Features that leave the graph before the head."""

import keras
from keras import layers, ops
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), digits.target


class Reader(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden, self.narrow = layers.Dense(64, activation="relu"), layers.Dense(8, activation="tanh")
        self.out = layers.Dense(10)

    def call(self, x):
        features = ops.stop_gradient(self.narrow(self.hidden(x)))  # expect: severed-graph
        return self.out(features)


model = Reader()
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=loss)
model.fit(images, target, batch_size=32, epochs=3, verbose=2)
