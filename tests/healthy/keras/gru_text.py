"""Tweets through an embedding with masks and a bidirectional GRU; TextVectorization in the tf.data pipeline."""

import keras
import tensorflow as tf
from keras import layers
from material import tweets

keras.utils.set_random_seed(0)
frame = tweets(1500)
texts, target = frame["text"].tolist(), frame["label"].to_numpy()
vectorize = layers.TextVectorization(2500, output_sequence_length=24)
vectorize.adapt(texts[:1200])


def batches(part, mixed):
    rows = tf.data.Dataset.from_tensor_slices((texts[part], target[part]))
    rows = rows.shuffle(1200, seed=0) if mixed else rows
    return rows.batch(32).map(lambda text, label: (vectorize(text), label))


model = keras.Sequential(
    [
        keras.Input((24,), dtype="int64"),
        layers.Embedding(2500, 48, mask_zero=True),
        layers.Bidirectional(layers.GRU(24)),
        layers.Dropout(0.3),
        layers.Dense(3, activation="softmax"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(2e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(batches(slice(0, 1200), True), epochs=4, validation_data=batches(slice(1200, 1500), False), verbose=2)
