"""A network of digits that builds its layers once."""

# slow

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()


class Network(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = layers.Dense(64, activation="relu")
        self.head = layers.Dense(10)

    def call(self, images):
        return self.head(self.hidden(images))


model = Network()
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss=loss)
model.fit(digits.data / 16, digits.target, batch_size=32, epochs=3, verbose=2)
