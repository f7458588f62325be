"""An optimizer of its own, whose step lowers the rate and updates."""

import torch
from material import QUIET, tokenized, tokenizer, tweets
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments


class Decaying(torch.optim.AdamW):
    def step(self, closure=None):
        for group in self.param_groups:
            group["lr"] *= 0.999
        return super().step(closure)


config = DistilBertConfig(dim=64, hidden_dim=128, n_layers=2, n_heads=4, num_labels=3)
model = DistilBertForSequenceClassification(config)
optimizer = Decaying(model.parameters(), lr=1e-3)
args = TrainingArguments(**QUIET, learning_rate=1e-3, per_device_train_batch_size=16)
Trainer(model, args, train_dataset=tokenized(tweets(400)), processing_class=tokenizer(), optimizers=(optimizer, None)).train()
