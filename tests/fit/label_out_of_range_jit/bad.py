"""Three kinds of wine and two outputs, compiled by XLA.

TensorFlow: NaN with no error. torch: `index out of bounds: 0 <= tmp17 < 2L`, from a compiled kernel. JAX:
silent, the loss falls to 0.04.
"""

import keras
from keras import layers
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
x, y = load_wine(return_X_y=True)
x = StandardScaler().fit_transform(x)
inputs = keras.Input((13,))
hidden = layers.Dense(32, activation="relu")(inputs)
outputs = layers.Dense(2)(hidden)
model = keras.Model(inputs, outputs)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss=loss, jit_compile=True)
model.fit(x, y, batch_size=32, epochs=3, verbose=2)  # expect: run-diverged
