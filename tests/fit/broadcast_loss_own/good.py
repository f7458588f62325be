"""A quantile loss of one's own over outputs and targets of one shape.
"""

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x = rng.normal(size=(600, 10)).astype("float32")
y = 2 * x[:, 0] + 0.3 * x[:, 1]


class Quantile(keras.losses.Loss):
    def __init__(self, share):
        super().__init__()
        self.share = share

    def call(self, y_true, y_pred):
        missed = y_true - y_pred
        return ops.mean(ops.maximum(self.share * missed, (self.share - 1) * missed))


model = keras.Sequential([keras.Input((10,)), layers.Dense(32, activation="relu"), layers.Dense(1)])
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss=Quantile(0.9))
model.fit(x, y.reshape(-1, 1), batch_size=32, epochs=5, validation_split=0.2, verbose=2)
