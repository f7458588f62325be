"""A tf.data pipeline that scales, augments, shuffles, repeats and prefetches; one-hot targets with smoothing."""

import keras
import tensorflow as tf
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
pixels = (digits.images * 15.9).astype("uint8")[..., None]


def prepare(image, label):
    return tf.cast(image, tf.float32) / 255.0, tf.one_hot(label, 10)


def augment(image, label):
    return tf.roll(image, tf.random.uniform((), -1, 2, tf.int32), axis=1), label


rows = tf.data.Dataset.from_tensor_slices((pixels, digits.target)).map(prepare)
held, train = rows.take(360).batch(64), rows.skip(360)
train = train.cache().shuffle(1437, seed=0).map(augment).batch(32, drop_remainder=True).repeat().prefetch(2)
model = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        layers.Conv2D(32, 3, activation="relu"),
        layers.Flatten(),
        layers.Dense(64, activation="relu"),
        layers.Dense(10),
    ]
)
loss = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)
model.compile(optimizer=keras.optimizers.Adam(2e-3), loss=loss, metrics=["accuracy"])
model.fit(train, steps_per_epoch=44, epochs=6, validation_data=held, verbose=2)
