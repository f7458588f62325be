"""Three values of a column are missing."""

import keras
from keras import layers
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

keras.utils.set_random_seed(0)
x, y = load_wine(return_X_y=True)
x = scale(x)
x[[3, 70, 140], 4] = float("nan")  # expect: non-finite-data
model = keras.Sequential([layers.Dense(32, activation="relu"), layers.Dense(3)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss=loss)
model.fit(x, y, batch_size=16, epochs=3, verbose=2)
