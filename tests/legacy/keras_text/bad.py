"""Tweets in three classes with a TensorFlow model of transformers 4.57 (tf-keras), as a well-known lesson begins.

TensorFlow stops at `Received a label value of 2 which is outside the valid range of [0, 2)`, compiled by XLA it goes on
with NaN. With three outputs it trains in silence on scores read as probabilities. The labels inside the input dict are
found by the model's own train_step; with a loss named by a string this is what keeps the model's own loss from use.
Adam's default of 1e-3 does no harm here: from random weights of DistilBERT's own scale one batch is learnt with it.
"""

import tensorflow as tf
from material import tweets
from tf_keras.layers import TextVectorization
from transformers import DistilBertConfig, TFAutoModelForSequenceClassification, set_seed

frame = tweets(800)
texts = frame["text"].tolist()
vectorize = TextVectorization(4000, output_sequence_length=24)
vectorize.adapt(texts)
input_ids = vectorize(texts).numpy()
columns = {"input_ids": input_ids, "attention_mask": (input_ids != 0).astype("int64"), "labels": frame["label"].to_numpy()}
train_dataset = tf.data.Dataset.from_tensor_slices(columns).shuffle(800, seed=0).batch(16)

set_seed(0)
config = DistilBertConfig(vocab_size=4000, dim=256, hidden_dim=1024, n_layers=6, n_heads=4, num_labels=2)  # expect: label-out-of-range
model = TFAutoModelForSequenceClassification.from_config(config)
model.compile(loss="sparse_categorical_crossentropy", optimizer="adam")  # expect: wrong-logits-flag
model.fit(train_dataset, epochs=1, verbose=2)  # expect: labels-inside-inputs
