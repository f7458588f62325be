"""Ratings as products of embeddings of people and films, with biases; two integer inputs."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
draw = np.random.default_rng(0)
tastes, traits = draw.normal(0, 1, (80, 3)), draw.normal(0, 1, (60, 3))
person, film = draw.integers(0, 80, 4000), draw.integers(0, 60, 4000)
score = (tastes[person] * traits[film]).sum(1) / 3**0.5 + draw.normal(0, 0.2, 4000)


def part(name, count):
    entry = keras.Input((), dtype="int32", name=name)
    return entry, layers.Embedding(count, 8)(entry), layers.Embedding(count, 1)(entry)


people, who, who_bias = part("person", 80)
films, what, what_bias = part("film", 60)
rating = layers.Add()([layers.Dot(axes=1)([who, what]), who_bias, what_bias])
model = keras.Model([people, films], rating)
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="mse", metrics=["mae"])
model.fit([person, film], score, batch_size=64, epochs=8, validation_split=0.1, verbose=2)
