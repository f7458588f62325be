"""The model takes the logarithm of its inputs, and every row is at least one."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
random = np.random.default_rng(0)
users = random.integers(0, 200, 3000)
stars = (np.log(users + 1) + random.normal(0, 0.3, 3000)).astype("float32")
days = random.integers(1, 400, 3000).astype("float32")
days[1100] = 1
model = keras.Sequential([keras.Input((2,)), layers.Lambda(lambda x: keras.ops.log(x)), layers.Dense(16), layers.Dense(1)])
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="mse")
model.fit(np.stack([users + 1, days], axis=1).astype("float32"), stars, epochs=3, batch_size=32, verbose=2)
