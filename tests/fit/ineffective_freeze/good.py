"""An encoder that is frozen and compiled again before the second fit."""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = digits.images[..., None].astype("float32") / 16, digits.target
encoder = keras.Sequential(
    [keras.Input((8, 8, 1)), layers.Conv2D(16, 3, activation="relu"), layers.Flatten(), layers.Dense(32, activation="relu")]
)
model = keras.Sequential([encoder, layers.Dense(10, activation="softmax")])
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(images[:800], target[:800], batch_size=32, epochs=2, verbose=2)

before = encoder.get_weights()
encoder.trainable = False
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(images[800:1600], target[800:1600], batch_size=32, epochs=2, verbose=2)
print("changed", max(abs(a - b).max() for a, b in zip(before, encoder.get_weights())))
