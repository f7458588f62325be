"""An autoencoder with binary cross-entropy, whose targets are scaled as its inputs.
"""

# slow

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
y = rng.integers(0, 8, (400, 1))
pixels = np.clip(128 + 100 * np.sin(y * np.arange(64) / 8) + rng.normal(0, 10, (400, 64)), 0, 255)
x = (pixels / 255).astype("float32")
model = keras.Sequential(
    [
        keras.Input((64,)),
        layers.Dense(16, activation="relu"),
        layers.Dense(64, activation="sigmoid"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="binary_crossentropy")
model.fit(x, x, batch_size=32, epochs=3, verbose=2)
