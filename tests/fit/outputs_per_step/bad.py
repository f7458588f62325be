"""A recurrent layer that gives an output a step, against one target a row: the loss compares each step with it.

Silent on each backend: (32, 20, 1) against (32, 1) is broadcast, the loss falls, and predict gives 20 numbers
a row.
"""

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
        layers.GRU(16, return_sequences=True),  # expect: outputs-per-step
        layers.Dense(1),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="mse")
model.fit(x, y, batch_size=32, epochs=4, verbose=2)
