"""Tweets as characters, and a collate function that does not pad: the Trainer."""

import torch
from material import QUIET, tweets
from torch import nn
from transformers import Trainer, TrainingArguments

torch.manual_seed(0)
rows = [([min(ord(c), 127) for c in text[:80]], label) for text, label in tweets(900).to_numpy()]
train_set = [{"x": codes, "labels": label} for codes, label in rows]


def collate(batch):
    codes = torch.tensor([row["x"] for row in batch])  # expect: ragged-batch
    return {"x": codes, "labels": torch.tensor([row["labels"] for row in batch])}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(128, 32)
        self.conv = nn.Conv1d(32, 64, 5, padding=2)
        self.head = nn.Linear(64, 3)

    def forward(self, x, labels=None):
        logits = self.head(torch.relu(self.conv(self.embedding(x).transpose(1, 2))).amax(dim=2))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=32, num_train_epochs=4)
Trainer(Net(), args, train_dataset=train_set, data_collator=collate).train()
