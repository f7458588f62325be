"""A softmax in the model, and a loss that applies it."""

import keras
from keras import layers, ops
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), digits.target
inputs = keras.Input((64,))
scores = layers.Dense(10)(layers.Dense(64, activation="relu")(inputs))
probabilities = layers.Softmax()(scores)  # expect: double-activation
model = keras.Model(inputs, ops.clip(probabilities, 1e-7, 1 - 1e-7))
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=loss)
model.fit(images, target, batch_size=32, epochs=3, verbose=2)
