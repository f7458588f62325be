"""Each digit has up to four properties at once, each with a sigmoid of its own."""

# slow

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
x, digits = load_digits(return_X_y=True)
x = (x / 16).astype("float32")
facts = np.stack([digits % 2 == 0, digits > 4, digits % 3 == 0, digits == 8], axis=1).astype("float32")
model = keras.Sequential(
    [keras.Input((64,)), layers.Dense(64, activation="relu"), layers.Dense(4, activation="sigmoid")]
)
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="binary_crossentropy")
model.fit(x, facts, batch_size=32, epochs=5, verbose=2)
