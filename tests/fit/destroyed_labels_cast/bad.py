"""The labels are scaled with the pixels; the loss makes them integers.

Silent on each backend: every label is 0 for the loss, and the accuracy is perfect at once.
"""

import keras
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
pixels, digits = load_digits(return_X_y=True)
x, y = (pixels / 16).astype("float32"), (digits / 10).astype("float32")  # expect: destroyed-labels
model = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(10, "softmax")])
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x[:1400], y[:1400], validation_data=(x[1400:], y[1400:]), batch_size=64, epochs=5, verbose=2)
