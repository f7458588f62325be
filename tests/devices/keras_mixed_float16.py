"""Keras in mixed_float16, with a GPU whose memory is to grow."""

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

images, digits = load_digits(return_X_y=True)
images = (images / 16).astype(np.float32)

gpus = tf.config.list_physical_devices("GPU")
tf.config.experimental.set_memory_growth(gpus[0], True)
keras.mixed_precision.set_global_policy("mixed_float16")
layers = keras.layers
model = keras.Sequential([layers.Input((64,)), layers.Dense(64, "relu"), layers.Dense(10, dtype="float32")])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])
model.fit(images, digits, epochs=2, verbose=0)
