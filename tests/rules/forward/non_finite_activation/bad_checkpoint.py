"""A checkpoint of a training that had diverged."""

# slow

import torch
from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
made = DistilBertForSequenceClassification(config)
torch.nn.init.constant_(made.distilbert.transformer.layer[1].ffn.lin1.weight, float("nan"))
made.save_pretrained("/tmp/trainwright-test/checkpoint")
model = DistilBertForSequenceClassification.from_pretrained("/tmp/trainwright-test/checkpoint")  # expect: non-finite-activation
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
Trainer(model, args, train_dataset=tokenized(tweets(400)), processing_class=tokenizer()).train()
