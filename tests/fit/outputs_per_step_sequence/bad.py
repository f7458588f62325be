"""Series of three kinds, and a recurrent layer that gives its state at every step.

TensorFlow: `Argument `output` must have rank (ndim) `target.ndim - 1``. torch and JAX: `must have the same shape up until the
last dimension: target.shape=(32,), output.shape=(32, 12, 3)`. Neither names the layer.
"""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
random = np.random.default_rng(0)
x = random.normal(size=(256, 12, 4)).astype("float32")
kinds = np.digitize(x[:, -3:, 0].sum(1), [-1, 1])
inputs = keras.Input((12, 4))
states = layers.GRU(16, return_sequences=True)(inputs)  # expect: outputs-per-step
model = keras.Model(inputs, layers.Dense(3, activation="softmax")(states))
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="sparse_categorical_crossentropy")
model.fit(x, kinds, batch_size=32, epochs=5, verbose=2)
