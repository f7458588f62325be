"""The progress of a disease, 25 to 346, as a network's target without scaling.

Silent on each backend: the loss is still 26,000 after 20 epochs, the variance of the targets 5,900.
"""

import keras
from keras import layers
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
x, y = load_diabetes(return_X_y=True)
x = StandardScaler().fit_transform(x)
y = y.astype("float32")
model = keras.Sequential([keras.Input((10,)), layers.Dense(32, activation="relu"), layers.Dense(1)])
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse")
model.fit(x, y, batch_size=32, epochs=20, verbose=2)  # expect: unscaled-targets
