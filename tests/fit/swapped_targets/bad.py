"""A wine's color and its kind by one network, and the two targets in the other order.

TensorFlow: `Received a label value of -1 which is outside the valid range of [0, 3)`. torch: `Target -1 is out of bounds.`
JAX: silent, the kinds are learned as if they were colors, and the colors as kinds.
"""

import keras
from keras import layers
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
x, kind = load_wine(return_X_y=True)
x = StandardScaler().fit_transform(x)
inputs = keras.Input((12,))
hidden = layers.Dense(32, activation="relu")(inputs)
colour = layers.Dense(1, name="colour")(hidden)
model = keras.Model(inputs, [colour, layers.Dense(3, activation="softmax", name="kind")(hidden)])
losses = ["mse", "sparse_categorical_crossentropy"]
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss=losses)
features = x[:, [*range(9), 10, 11, 12]]
model.fit(features, [kind, x[:, 9:10]], batch_size=16, epochs=3, verbose=2)  # expect: swapped-targets
