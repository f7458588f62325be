"""Digits, and a softmax before cross-entropy: the Trainer."""

import torch
from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
train_set = [{"x": row, "labels": label} for row, label in zip(X, y)]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(64, 64)
        self.head = nn.Linear(64, 10)

    def forward(self, x, labels=None):
        hidden = torch.relu(self.hidden(x))
        logits = torch.softmax(self.head(hidden), dim=1)  # expect: double-activation
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=32, num_train_epochs=4)
Trainer(Net(), args, train_dataset=train_set).train()
