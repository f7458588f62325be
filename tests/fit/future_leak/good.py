"""A language model of characters with a causal mask.
"""

# slow

import argparse
import inspect

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
text = inspect.getsource(argparse)[:20_000]
letters = sorted(set(text))
codes = np.array([letters.index(c) for c in text])
LENGTH, WIDTH = 32, 64
windows = np.lib.stride_tricks.sliding_window_view(codes, LENGTH + 1)[::8]
x, y = windows[:, :-1], windows[:, 1:]


class Block(layers.Layer):
    def __init__(self):
        super().__init__()
        self.norm = layers.LayerNormalization()
        self.attention = layers.MultiHeadAttention(4, WIDTH // 4)
        self.wide, self.narrow = layers.Dense(4 * WIDTH, activation="gelu"), layers.Dense(WIDTH)

    def call(self, inputs):
        normed = self.norm(inputs)
        inputs = inputs + self.attention(normed, normed, use_causal_mask=True)
        return inputs + self.narrow(self.wide(inputs))


class LanguageModel(keras.Model):
    def __init__(self):
        super().__init__()
        self.tokens = layers.Embedding(len(letters), WIDTH)
        self.positions = layers.Embedding(LENGTH, WIDTH)
        self.blocks = [Block(), Block()]
        self.head = layers.Dense(len(letters))

    def call(self, ids):
        hidden = self.tokens(ids) + self.positions(keras.ops.arange(LENGTH))
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(hidden)


model = LanguageModel()
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=loss, metrics=["accuracy"])
model.fit(x, y, batch_size=32, epochs=3, verbose=2)
