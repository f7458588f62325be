"""Counts by a Poisson loss with an exponential output, and a positive rate that depends on two columns."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
draw = np.random.default_rng(0)
x = draw.normal(0, 1, (1500, 5)).astype("float32")
count = draw.poisson(np.exp(0.8 + 0.6 * x[:, 0] - 0.4 * x[:, 3])).astype("float32")[:, None]
model = keras.Sequential(
    [keras.Input((5,)), layers.Dense(16, activation="tanh"), layers.Dense(1, activation="exponential")]
)
model.compile(optimizer="rmsprop", loss="poisson", metrics=["mse"])
model.fit(x, count, batch_size=32, epochs=8, validation_split=0.2, verbose=2)
