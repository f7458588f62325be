"""A table as it was measured: batch normalization scales it, in training by each batch and later by what it gathered."""

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_wine

keras.utils.set_random_seed(0)
x, y = load_wine(return_X_y=True)
order = np.random.default_rng(0).permutation(len(y))
x, y = x[order], y[order]
model = keras.Sequential(
    [
        keras.Input((13,)),
        layers.BatchNormalization(),
        layers.Dense(32, activation="relu"),
        layers.Dense(3, activation="softmax"),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(1e-2), loss="sparse_categorical_crossentropy", metrics=["accuracy"]
)
model.fit(x, y, batch_size=16, epochs=20, validation_split=0.2, verbose=2)
