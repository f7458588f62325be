"""The progress of a disease, standardized."""

import keras
from keras import layers
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
x, y = load_diabetes(return_X_y=True)
x = StandardScaler().fit_transform(x)
y = (y - y.mean()) / y.std()
y = y.astype("float32")
model = keras.Sequential([keras.Input((10,)), layers.Dense(32, activation="relu"), layers.Dense(1)])
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse")
model.fit(x, y, batch_size=32, epochs=20, verbose=2)
