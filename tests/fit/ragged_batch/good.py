"""Rows of tokens of one length.
"""

# slow

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
y = rng.integers(0, 2, 400)
rows = [[5 + label, *rng.integers(10, 50, rng.integers(3, 12))] for label in y]
x = keras.utils.pad_sequences(rows, padding="post")
model = keras.Sequential(
    [
        layers.Embedding(50, 8),
        layers.GlobalAveragePooling1D(),
        layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="binary_crossentropy", metrics=["accuracy"])
model.fit(x, y, batch_size=32, epochs=3, verbose=2)
