"""A network of digits that builds its last layer where it calls it.

TensorFlow: `tf.function only supports singleton tf.Variables created on the first call.` torch: silent, the loss stays at 2.3.
JAX: silent, what comes before learns to live with a layer that never learns.
"""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()


class Network(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = layers.Dense(64, activation="relu")

    def call(self, images):
        return layers.Dense(10)(self.hidden(images))  # expect: rebuilt-layers


model = Network()
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss=loss)
model.fit(digits.data / 16, digits.target, batch_size=32, epochs=3, verbose=2)
