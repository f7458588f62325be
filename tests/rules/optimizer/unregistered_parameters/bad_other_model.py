"""An optimizer built before the model was built anew."""

# slow

import torch
from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
first = DistilBertForSequenceClassification(config)
optimizer = torch.optim.AdamW(first.parameters(), lr=1e-3)  # expect: unregistered-parameters
model = DistilBertForSequenceClassification(config)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
Trainer(model, args, train_dataset=tokenized(tweets(400)), processing_class=tokenizer(), optimizers=(optimizer, None)).train()
