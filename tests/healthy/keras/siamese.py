"""Pairs of digits, alike or not: one encoder for both, the distance, and a contrastive loss of one's own."""

import keras
import numpy as np
from keras import layers, ops
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, classes = (digits.data / 16).astype("float32"), digits.target
draw = np.random.default_rng(0)
left = draw.integers(0, len(images), 2400)
alike = draw.random(2400) < 0.5
right = np.array([draw.choice(np.flatnonzero((classes == classes[i]) == a)) for i, a in zip(left, alike)])


def contrastive(y_true, distance):
    y_true = ops.cast(y_true, distance.dtype)
    return y_true * distance**2 + (1 - y_true) * ops.maximum(1.0 - distance, 0.0) ** 2


encoder = keras.Sequential([keras.Input((64,)), layers.Dense(48, activation="relu"), layers.Dense(16)])
one, other = keras.Input((64,)), keras.Input((64,))
difference = layers.Subtract()([encoder(one), encoder(other)])
distance = layers.Lambda(lambda d: ops.sqrt(ops.sum(d**2, axis=-1, keepdims=True) + 1e-6), output_shape=(1,))(difference)
model = keras.Model([one, other], distance)
model.compile(optimizer=keras.optimizers.Adam(2e-3), loss=contrastive)
target = alike.astype("float32")[:, None]
model.fit([images[left], images[right]], target, batch_size=64, epochs=6, validation_split=0.2, verbose=2)
