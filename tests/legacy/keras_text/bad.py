"""Tweets in three classes with a TensorFlow model of transformers 4.57 (tf-keras), as a well-known lesson begins.

TensorFlow stops at `Received a label value of 2 which is outside the valid range of [0, 2)`, compiled by XLA it goes on
with NaN. With three outputs it trains in silence on scores read as probabilities. The labels inside the input dict are
found by the model's own train_step; with a loss named by a string this is what keeps the model's own loss from use.
Adam's default of 1e-3 leaves a model of DistilBERT's size where a constant prediction is.
"""

import tensorflow as tf
from material import tweets
from tf_keras.layers import TextVectorization
from transformers import DistilBertConfig, TFAutoModelForSequenceClassification, set_seed

frame = tweets(800)
texts = frame["text"].tolist()
vectorize = TextVectorization(4000, output_sequence_length=16)
vectorize.adapt(texts)
input_ids = vectorize(texts).numpy()
columns = {"input_ids": input_ids, "attention_mask": (input_ids != 0).astype("int64"), "labels": frame["label"].to_numpy()}
train_dataset = tf.data.Dataset.from_tensor_slices(columns).shuffle(800, seed=0).batch(8)  # expect: labels-inside-inputs

set_seed(0)
config = DistilBertConfig(vocab_size=4000, num_labels=2)
model = TFAutoModelForSequenceClassification.from_config(config)  # expect: label-out-of-range
model.compile(
    loss="sparse_categorical_crossentropy",  # expect: wrong-logits-flag
    optimizer="adam",  # expect: hidden-default-rate
)
model.fit(train_dataset, epochs=1, verbose=2)
# slow
