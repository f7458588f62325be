"""A tf.data set that repeats, and fit with steps_per_epoch."""

import keras
import tensorflow as tf
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.images / 16).astype("float32"), digits.target
rows = tf.data.Dataset.from_tensor_slices((images[:1600], target[:1600])).shuffle(1600, seed=0)
train = rows.repeat().batch(32).prefetch(2)
held = tf.data.Dataset.from_tensor_slices((images[1600:], target[1600:])).batch(32)
model = keras.Sequential([keras.Input((8, 8)), layers.Flatten(), layers.Dense(32, activation="relu"), layers.Dense(10)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=loss, metrics=["accuracy"])
model.fit(train, epochs=10, steps_per_epoch=50, validation_data=held)
