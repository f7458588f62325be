"""A linear classifier with a squared hinge loss, labels -1 and 1, and SGD with a falling rate."""

import keras
from keras import layers
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

keras.utils.set_random_seed(0)
x, y = load_breast_cancer(return_X_y=True)
x, y = scale(x), 2.0 * y[:, None] - 1
model = keras.Sequential([keras.Input((30,)), layers.Dense(1, kernel_regularizer="l2")])
rate = keras.optimizers.schedules.ExponentialDecay(0.01, decay_steps=18, decay_rate=0.9)
model.compile(optimizer=keras.optimizers.SGD(rate), loss="squared_hinge")
model.fit(x, y, batch_size=32, epochs=8, verbose=2)
