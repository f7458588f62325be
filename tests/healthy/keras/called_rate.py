"""A learning rate that a function of the script's gives."""

import keras
import numpy as np

keras.utils.set_random_seed(0)
generator = np.random.default_rng(0)
x = generator.normal(size=(400, 8)).astype("float32")
y = (x[:, 0] + x[:, 1] > 0).astype("int32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(2)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(lambda: 0.01), loss=loss, metrics=["accuracy"])
model.fit(x[:300], y[:300], epochs=8, validation_data=(x[300:], y[300:]), verbose=2)
