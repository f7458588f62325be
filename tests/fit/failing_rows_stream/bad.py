"""The weight of one of 2,000 rows is a billion, in the last batches of a tf.data.Dataset.

No error on any backend: the loss of an epoch is in the hundred thousands, and the last update overwrites the others.
"""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(0)
random = np.random.default_rng(0)
x = random.normal(size=(2000, 6)).astype("float32")
y = x[:, :4].argmax(1)
weights = np.ones(2000, dtype="float32")
weights[1990] = np.float32(1e9)
train = tf.data.Dataset.from_tensor_slices((x, y, weights)).batch(32)  # expect: failing-rows
model = keras.Sequential([keras.Input((6,)), layers.Dense(32, activation="relu"), layers.Dense(4)])
model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(train, epochs=3, verbose=2)
