"""Digits from a tf.data.Dataset that nobody batched.

`Invalid input shape for input Tensor …: expected shape (None, 64), but input has incompatible shape (64,)`.
"""

import keras
import tensorflow as tf
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images, target = (digits.data / 16).astype("float32"), digits.target
train = tf.data.Dataset.from_tensor_slices((images[:1500], target[:1500])).shuffle(1500, seed=0)  # expect: unbatched-data
held = tf.data.Dataset.from_tensor_slices((images[1500:], target[1500:])).batch(32)

model = keras.Sequential([keras.Input((64,)), layers.Dense(64, activation="relu"), layers.Dense(10, activation="softmax")])
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(train, validation_data=held, epochs=3, verbose=2)
