"""A loss that counts the rows whose class is predicted wrongly.

TensorFlow and torch raise at the first step, and name no line; JAX trains in silence on gradients of zero.
"""

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x = rng.normal(size=(600, 10)).astype("float32")
y = (x @ rng.normal(size=(10, 3))).argmax(axis=1)


def share_of_wrong_classes(y_true, y_pred):
    guess = ops.argmax(y_pred, axis=-1)  # expect: no-gradient
    wrong = ops.not_equal(guess, ops.cast(ops.reshape(y_true, (-1,)), guess.dtype))
    return ops.mean(ops.cast(wrong, "float32"))


model = keras.Sequential(
    [keras.Input((10,)), layers.Dense(64, activation="relu"), layers.Dense(3, activation="softmax")]
)
model.compile(optimizer="adam", loss=share_of_wrong_classes, metrics=["accuracy"])
model.fit(x, y, batch_size=32, epochs=3, verbose=2)
