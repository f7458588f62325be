"""Texts as token numbers, for a model that begins with an embedding.
"""

# slow

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
texts = ["a good film", "a bad film", "great", "awful", "good fun", "bad taste"] * 40
labels = np.array([1, 0, 1, 0, 1, 0] * 40)
words = sorted({word for text in texts for word in text.split()})
rows = [[words.index(word) + 1 for word in text.split()] for text in texts]
x = keras.utils.pad_sequences(rows, maxlen=4)
model = keras.Sequential(
    [
        layers.Embedding(100, 8),
        layers.GlobalAveragePooling1D(),
        layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(x, labels, batch_size=32, epochs=3, verbose=2)
