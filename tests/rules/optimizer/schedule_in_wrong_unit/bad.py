"""A linear schedule over three epochs, counted as three updates."""

import torch
from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments
from transformers import get_linear_schedule_with_warmup

config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
schedule = get_linear_schedule_with_warmup(optimizer, 0, num_training_steps=3)  # expect: schedule-in-wrong-unit
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16, num_train_epochs=3)
Trainer(model, args, train_dataset=tokenized(tweets(400)), processing_class=tokenizer(), optimizers=(optimizer, schedule)).train()
