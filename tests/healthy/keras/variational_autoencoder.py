"""A variational autoencoder of digits: sampling in a layer of its own, the divergence by add_loss, x as target."""

import keras
from keras import layers, ops
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
images = (load_digits().data / 16).astype("float32")


class Sampling(layers.Layer):
    def __init__(self, weight):
        super().__init__()
        self.weight, self.seeds = weight, keras.random.SeedGenerator(1)

    def call(self, mean, log_variance):
        divergence = ops.sum(ops.exp(log_variance) + mean**2 - 1 - log_variance, axis=-1) / 2
        self.add_loss(self.weight * ops.mean(divergence))
        return mean + ops.exp(log_variance / 2) * keras.random.normal(ops.shape(mean), seed=self.seeds)


inputs = keras.Input((64,))
hidden = layers.Dense(64, activation="relu")(inputs)
code = Sampling(0.01)(layers.Dense(8)(hidden), layers.Dense(8)(hidden))
decoded = layers.Dense(64, activation="sigmoid")(layers.Dense(64, activation="relu")(code))
model = keras.Model(inputs, decoded)
model.compile(optimizer=keras.optimizers.Adam(2e-3), loss="binary_crossentropy")
model.fit(images, images, batch_size=64, epochs=8, verbose=2)
