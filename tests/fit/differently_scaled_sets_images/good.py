"""Pictures in a tf.data pipeline that divides by 255 in training and validation."""

# slow
# backends: tensorflow

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
images = np.minimum(digits.images[..., None] * 16, 255).astype("uint8")
train = tf.data.Dataset.from_tensor_slices((images[:1400], digits.target[:1400])).shuffle(1400, seed=0)
train = train.map(lambda image, label: (tf.cast(image, tf.float32) / 255.0, label)).batch(32)
held = tf.data.Dataset.from_tensor_slices((images[1400:], digits.target[1400:]))
held = held.map(lambda image, label: (tf.cast(image, tf.float32) / 255.0, label)).batch(32)
model = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        layers.Conv2D(16, 3, activation="relu"),
        layers.Flatten(),
        layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(train, epochs=5, validation_data=held, verbose=2)
