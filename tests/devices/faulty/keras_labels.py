"""Keras below tf.device, with labels beyond the outputs."""

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

images, digits = load_digits(return_X_y=True)
images = (images / 16).astype(np.float32)

layers = keras.layers
with tf.device("/GPU:0"):
    model = keras.Sequential([layers.Input((64,)), layers.Dense(64, "relu"), layers.Dense(9)])  # expect: label-out-of-range
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss)
model.fit(images, digits, epochs=2, verbose=0)
