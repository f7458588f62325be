"""Tweets of different lengths, batched without padding."""

import keras
import tensorflow as tf
from keras import layers
from material import tokenizer, tweets

keras.utils.set_random_seed(0)
frame = tweets(400)
tokens, labels = tokenizer()(frame["text"].tolist(), truncation=True)["input_ids"], frame["label"].tolist()
kinds = (tf.TensorSpec((None,), tf.int32), tf.TensorSpec((), tf.int32))
rows = tf.data.Dataset.from_generator(lambda: zip(tokens, labels), output_signature=kinds).batch(16)  # expect: ragged-batch
model = keras.Sequential([layers.Embedding(30522, 16), layers.GlobalAveragePooling1D(), layers.Dense(3)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=loss)
model.fit(rows, epochs=1, verbose=2)
