"""Rows with weights: old measurements count less; weighted metrics beside plain ones."""

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

keras.utils.set_random_seed(0)
x, y = load_diabetes(return_X_y=True)
x, y = scale(x).astype("float32"), scale(y).astype("float32")[:, None]
draw = np.random.default_rng(0)
age_years = draw.uniform(0, 10, len(x))
y += draw.normal(0, age_years[:, None] / 10, y.shape)
weight = np.exp(-age_years / 4)
model = keras.Sequential([keras.Input((10,)), layers.Dense(32, activation="relu"), layers.Dense(1)])
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="mse", weighted_metrics=["mae"], metrics=["mae"])
model.fit(x, y, sample_weight=weight, batch_size=32, epochs=15, validation_split=0.2, verbose=2)
