"""Columns and targets as they are: a Normalization layer at the input, and one inverted at the output."""

import keras
from keras import layers
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(0)
x, y = load_diabetes(return_X_y=True, scaled=False)
x, y = x.astype("float32"), y.astype("float32")[:, None]
train_x, test_x, train_y, test_y = train_test_split(x, y, test_size=0.2, random_state=0)
scaled = layers.Normalization()
scaled.adapt(train_x)
back = layers.Normalization(invert=True)
back.adapt(train_y)
model = keras.Sequential([keras.Input((10,)), scaled, layers.Dense(32, activation="relu"), layers.Dense(1), back])
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="mae", metrics=["root_mean_squared_error"])
model.fit(train_x, train_y, batch_size=32, epochs=15, validation_data=(test_x, test_y), verbose=2)
