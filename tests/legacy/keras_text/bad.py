"""Tweets in three classes with a TensorFlow model of transformers 4.57, as a well-known lesson begins (tf-keras).

"""

import tensorflow as tf
from material import tokenizer, tweets
from transformers import DistilBertConfig, TFAutoModelForSequenceClassification, set_seed

frame = tweets(800)
rows = dict(tokenizer()(frame["text"].tolist(), padding=True, truncation=True, max_length=32, return_tensors="np"))
rows.pop("token_type_ids")
rows["labels"] = frame["label"].to_numpy()
train_dataset = tf.data.Dataset.from_tensor_slices(rows).shuffle(800, seed=0).batch(16)

set_seed(0)
config = DistilBertConfig(dim=256, hidden_dim=1024, n_layers=6, n_heads=4, num_labels=2)
model = TFAutoModelForSequenceClassification.from_config(config)
model.compile(loss="sparse_categorical_crossentropy", optimizer="adam")
model.fit(train_dataset, epochs=1, verbose=2)
