"""A whole model frozen where its encoder was meant.

Silent on each backend: the loss of the first epoch stays.
"""

import keras
from keras import layers
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
x, y = load_wine(return_X_y=True)
x = StandardScaler().fit_transform(x)
encoder = keras.Sequential([keras.Input((13,)), layers.Dense(32, activation="tanh")])
model = keras.Sequential([encoder, layers.Dense(3)])
model.trainable = False  # expect: frozen-model
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss=loss, metrics=["accuracy"])
model.fit(x, y, batch_size=16, epochs=4, verbose=2)
