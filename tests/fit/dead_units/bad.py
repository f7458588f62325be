"""Rectifiers whose bias starts so far below zero that none of them is ever above.

Silent on each backend: no gradient passes, and the model learns the classes' shares alone.
"""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x = rng.normal(size=(600, 10)).astype("float32")
y = (x @ rng.normal(size=(10, 3))).argmax(axis=1)
model = keras.Sequential(
    [
        keras.Input((10,)),
        layers.Dense(64, activation="relu", bias_initializer=keras.initializers.Constant(-20.0)),  # expect: dead-units
        layers.Dense(3, activation="softmax"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, batch_size=32, epochs=3, validation_split=0.2, verbose=2)
