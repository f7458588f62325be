"""Short texts, padded behind with zeros that an LSTM leaves out.
"""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
LENGTH, WORDS = 40, 300
lengths, y = rng.integers(3, 12, 600), rng.integers(0, 2, 600)
x = np.zeros((600, LENGTH), "int32")
for row, length, label in zip(x, lengths, y):
    row[:length] = rng.integers(10, WORDS, length)
    row[0] = 5 if label else 6  # what the first word says decides
model = keras.Sequential(
    [
        keras.Input((LENGTH,), dtype="int32"),
        layers.Embedding(WORDS, 16, mask_zero=True),
        layers.LSTM(8),
        layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="binary_crossentropy", metrics=["accuracy"])
model.fit(x, y, batch_size=32, epochs=3, validation_split=0.2, verbose=2)
