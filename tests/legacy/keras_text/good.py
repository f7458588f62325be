"""Tweets in three classes with a TensorFlow model of transformers 4.57 (tf-keras), which computes its own loss."""

import tensorflow as tf
from material import tweets
from tf_keras.layers import TextVectorization
from tf_keras.optimizers import Adam
from transformers import DistilBertConfig, TFAutoModelForSequenceClassification, set_seed

frame = tweets(800)
texts = frame["text"].tolist()
vectorize = TextVectorization(4000, output_sequence_length=16)
vectorize.adapt(texts)
input_ids = vectorize(texts).numpy()
columns = {"input_ids": input_ids, "attention_mask": (input_ids != 0).astype("int64"), "labels": frame["label"].to_numpy()}
train_dataset = tf.data.Dataset.from_tensor_slices(columns).shuffle(800, seed=0).batch(8)

set_seed(0)
config = DistilBertConfig(vocab_size=4000, num_labels=3)
model = TFAutoModelForSequenceClassification.from_config(config)
model.compile(optimizer=Adam(1e-4))
model.fit(train_dataset, epochs=1, verbose=2)
# slow
