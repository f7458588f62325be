"""Batches of a dict of inputs, and the labels apart."""

import keras
import tensorflow as tf
from keras import layers
from material import tweets

keras.utils.set_random_seed(0)
frame = tweets(600)
vectorize = layers.TextVectorization(2000, output_sequence_length=24)
vectorize.adapt(frame["text"].tolist())
tokens = keras.ops.convert_to_numpy(vectorize(frame["text"].tolist()))
columns = ({"tokens": tokens}, frame["label"].to_numpy())
batches = tf.data.Dataset.from_tensor_slices(columns).shuffle(600, seed=0).batch(32)
inputs = {"tokens": keras.Input((24,), dtype="int64")}
x = layers.GlobalAveragePooling1D()(layers.Embedding(2000, 32)(inputs["tokens"]))
model = keras.Model(inputs, layers.Dense(3, activation="softmax")(x))
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="sparse_categorical_crossentropy")
model.fit(batches, epochs=3, verbose=2)
