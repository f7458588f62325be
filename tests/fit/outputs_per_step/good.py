"""A recurrent layer that gives its last output, against one target a row."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
draw = np.random.default_rng(0)
phase = draw.uniform(0, 2 * np.pi, (800, 1))
wave = np.sin(phase + np.arange(21) * 0.5).astype("float32")
x, y = wave[:, :20, None], wave[:, 20:]
model = keras.Sequential(
    [
        keras.Input((20, 1)),
        layers.GRU(16),
        layers.Dense(1),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="mse")
model.fit(x, y, batch_size=32, epochs=4, verbose=2)
