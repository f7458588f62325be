"""A denoising autoencoder whose loss is its own compute_loss: the error of hidden pixels alone; no loss in compile."""

import keras
from keras import layers, ops
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
images = (load_digits().images / 16).astype("float32")[..., None]


class Restorer(keras.Model):
    def __init__(self):
        super().__init__()
        self.seeds = keras.random.SeedGenerator(3)
        self.wide = [layers.Conv2D(24, 3, padding="same", activation="relu") for _ in range(3)]
        self.out = layers.Conv2D(1, 3, padding="same")

    def call(self, inputs):
        x = inputs
        for layer in self.wide:
            x = layer(x)
        return self.out(x)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        hidden = ops.cast(keras.random.uniform(ops.shape(x), seed=self.seeds) < 0.3, "float32")
        restored = self(x * (1 - hidden), training=training)
        return ops.sum(hidden * (restored - x) ** 2) / (ops.sum(hidden) + 1)


model = Restorer()
model.compile(optimizer=keras.optimizers.Adam(2e-3))
model.fit(images, batch_size=64, epochs=6, verbose=2)
