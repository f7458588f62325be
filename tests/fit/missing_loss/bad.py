"""Digits, and a model that was compiled without a loss.

TensorFlow and torch: `No loss to compute. Provide a `loss` argument in `compile()`.` JAX: 0.0000e+00 to the last epoch.
"""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), digits.target
model = keras.Sequential([keras.Input((64,)), layers.Dense(64, activation="relu"), layers.Dense(10, activation="softmax")])
model.compile(optimizer=keras.optimizers.Adam(5e-3))  # expect: missing-loss
model.fit(images, target, batch_size=32, epochs=3, verbose=2)
