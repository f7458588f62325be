"""A model whose call takes training and hands it on to its layers, as JAX needs it."""

# slow
# backends: jax

import keras
from keras import layers
from sklearn.datasets import load_digits


class Network(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden, self.head = layers.Dense(64, activation="relu"), layers.Dense(10)
        self.norm, self.drop = layers.BatchNormalization(), layers.Dropout(0.4)

    def call(self, x, training=False):
        normal = self.norm(self.hidden(x), training=training)
        return self.head(self.drop(normal, training=training))


keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), digits.target
model = Network()
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(images, target, batch_size=32, epochs=3, verbose=2)
