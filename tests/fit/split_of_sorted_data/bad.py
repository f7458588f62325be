"""Wine in the order of its kinds; validation_split takes the tail, which is one kind alone.

Silent on each backend: accuracy 1.0 in training, 0.5 to 0.8 in validation, where only the third kind is.
"""

import keras
from keras import layers
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
x, y = load_wine(return_X_y=True)
x = StandardScaler().fit_transform(x)
model = keras.Sequential([keras.Input((13,)), layers.Dense(32, activation="relu"), layers.Dense(3)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss=loss, metrics=["accuracy"])
model.fit(x, y, batch_size=16, epochs=10, validation_split=0.25, verbose=2)  # expect: split-of-sorted-data
