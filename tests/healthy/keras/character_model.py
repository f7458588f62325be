"""A causal character model: the next character at each place, targets shifted by one, padding without weight."""

import keras
import numpy as np
from keras import layers
from material import tweets

keras.utils.set_random_seed(0)
texts = [text[:48] for text in tweets(1200)["text"]]
letters = sorted(set("".join(texts)))
codes = {letter: i + 1 for i, letter in enumerate(letters)}
rows = np.zeros((len(texts), 49), dtype="int32")
for row, text in zip(rows, texts):
    row[: len(text)] = [codes[letter] for letter in text]
x, y = rows[:, :-1], rows[:, 1:]
width = 48
inputs = keras.Input((48,), dtype="int32")
h = layers.Embedding(len(letters) + 1, width)(inputs)
for _ in range(2):
    h = layers.LSTM(width, return_sequences=True)(h) + h
model = keras.Model(inputs, layers.Dense(len(letters) + 1)(layers.LayerNormalization()(h)))
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
model.compile(optimizer=keras.optimizers.Adam(4e-3), loss=loss)
model.fit(x, y, batch_size=32, epochs=3, verbose=2)
