"""A model of twelve columns, for a table of thirteen."""

import keras
from keras import layers
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

keras.utils.set_random_seed(0)
x, y = load_wine(return_X_y=True)
x = scale(x)
model = keras.Sequential([keras.Input((12,)), layers.Dense(32, activation="relu"), layers.Dense(3)])  # expect: layer-size-mismatch
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss=loss)
model.fit(x, y, batch_size=16, epochs=3, verbose=2)
