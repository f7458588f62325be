"""A training that goes on for ten more epochs from the tenth."""

# slow

import keras
from keras import layers
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

keras.utils.set_random_seed(0)
features, target = load_diabetes(return_X_y=True)
features, target = scale(features).astype("float32"), scale(target).astype("float32")[:, None]

model = keras.Sequential([keras.Input((10,)), layers.Dense(32, activation="relu"), layers.Dense(1)])
model.compile(keras.optimizers.Adam(2e-3), "mse")
model.fit(features, target, epochs=20, initial_epoch=10)
