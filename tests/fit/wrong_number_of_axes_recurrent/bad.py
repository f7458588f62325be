"""Two recurrent layers, of which the first gives its last state alone.

The second refuses it while the model is built, before fit is reached.
"""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x = rng.normal(size=(200, 16, 4)).astype("float32")
y = (x[:, :, 0].sum(axis=1) > 0).astype("float32")
inputs = keras.Input((16, 4))
hidden = layers.LSTM(8)(inputs)
hidden = layers.LSTM(8)(hidden)  # expect: wrong-number-of-axes
model = keras.Model(inputs, layers.Dense(1, activation="sigmoid")(hidden))
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(x, y, batch_size=32, epochs=3, verbose=2)
