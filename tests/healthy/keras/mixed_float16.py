"""Computation in float16, under the loss scale that compile puts around a plain optimizer by itself."""

import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
keras.mixed_precision.set_global_policy("mixed_float16")
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), digits.target
inputs = keras.Input((64,))
x = layers.Dense(64, activation="relu")(inputs)
outputs = layers.Activation("softmax", dtype="float32")(layers.Dense(10)(x))
model = keras.Model(inputs, outputs)
model.compile(optimizer=keras.optimizers.SGD(0.1), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(images, target, batch_size=32, epochs=5, validation_split=0.15, verbose=2)
