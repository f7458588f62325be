"""A checkpoint with finite weights."""

# slow

from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
made = DistilBertForSequenceClassification(config)
made.save_pretrained("/tmp/trainwright-test/checkpoint")
model = DistilBertForSequenceClassification.from_pretrained("/tmp/trainwright-test/checkpoint")
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
Trainer(model, args, train_dataset=tokenized(tweets(400)), processing_class=tokenizer()).train()
