"""Keras below tf.device and a strategy of mirrors."""

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

images, digits = load_digits(return_X_y=True)
images = (images / 16).astype(np.float32)

strategy = tf.distribute.MirroredStrategy()
layers = keras.layers
with tf.device("/GPU:0"):
    model = keras.Sequential([layers.Input((64,)), layers.Dense(64, "relu"), layers.Dense(10)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])
model.fit(images, digits, epochs=2, verbose=0)
