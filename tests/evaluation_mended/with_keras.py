"""Three kinds of wine, numbered from 1, and three units; the evaluation computes the loss as well: Keras."""

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

keras.utils.set_random_seed(0)
x, y = load_wine(return_X_y=True)
order = np.random.default_rng(0).permutation(len(x))
x, y = scale(x)[order], y[order] + 1
model = keras.Sequential([layers.Dense(32, activation="relu"), layers.Dense(3, activation="softmax")])
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="sparse_categorical_crossentropy")
model.fit(x[:130], y[:130], validation_data=(x[130:], y[130:]), batch_size=16, epochs=3, verbose=2)
