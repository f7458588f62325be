"""A generator without an end, steps_per_epoch, and validation_steps."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)


def waves(seed, size=32):
    draw = np.random.default_rng(seed)
    while True:
        kind = draw.integers(0, 3, size)
        time = np.linspace(0, 6, 40) + draw.uniform(0, 6, (size, 1))
        shapes = np.stack([np.sin(time), np.sign(np.sin(time)), 2 * np.abs((time / 3) % 2 - 1) - 1])
        x = shapes[kind, np.arange(size)] + draw.normal(0, 0.1, (size, 40))
        yield x[..., None].astype("float32"), kind


model = keras.Sequential(
    [
        keras.Input((40, 1)),
        layers.Conv1D(16, 5, activation="relu"),
        layers.Conv1D(16, 5, activation="relu"),
        layers.GlobalAveragePooling1D(),
        layers.Dense(3, activation="softmax"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(waves(0), steps_per_epoch=30, epochs=5, validation_data=waves(1), validation_steps=5, verbose=2)
