"""Classes 0 to 9, cast to 32 bits."""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images = (digits.images / 16).astype("float32")
target = digits.target.astype("int32")
model = keras.Sequential([keras.Input((8, 8)), layers.Flatten(), layers.Dense(32, activation="relu"), layers.Dense(10)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss=loss, metrics=["accuracy"])
model.fit(images, target, batch_size=32, epochs=3, verbose=2)
