"""Norms are to be spared under the names of another framework."""

import torch
from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
spared = [p for n, p in model.named_parameters() if "gamma" in n or "beta" in n]
decayed = [p for n, p in model.named_parameters() if not any(p is q for q in spared)]
groups = [{"params": decayed, "weight_decay": 0.01}, {"params": spared, "weight_decay": 0.0}]
optimizer = torch.optim.AdamW(groups, lr=1e-3)  # expect: decayed-norms
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
Trainer(model, args, train_dataset=tokenized(tweets(400)), processing_class=tokenizer(), optimizers=(optimizer, None)).train()
