"""A TensorFlow model of transformers 4.57 on tf-keras trained on its own loss."""

import numpy as np
import tensorflow as tf
import tf_keras
from transformers import DistilBertConfig, TFAutoModelForSequenceClassification

random = np.random.default_rng(0)
labels = random.integers(0, 3, 480)
input_ids = random.integers(10, 100, (480, 12))
input_ids[np.arange(480), random.integers(1, 12, 480)] = labels + 5
rows = {"input_ids": input_ids, "attention_mask": np.ones_like(input_ids), "labels": labels}
train_dataset = tf.data.Dataset.from_tensor_slices(rows).shuffle(480, seed=0).batch(16)

tf_keras.utils.set_random_seed(0)
config = DistilBertConfig(
    vocab_size=100, max_position_embeddings=12, dim=64, hidden_dim=128, n_layers=2, n_heads=2, num_labels=3
)
model = TFAutoModelForSequenceClassification.from_config(config)
model.compile(optimizer=tf_keras.optimizers.Adam(3e-4))
model.fit(train_dataset, epochs=2, verbose=2)
print("weights", [float(abs(w).sum()) for w in model.get_weights()])
