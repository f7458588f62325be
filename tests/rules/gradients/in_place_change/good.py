"""A gate that makes a new tensor; adding in place to what nothing needs is in order."""

import torch
import torch.nn.functional as F
from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments

digits = load_digits()
rows = [{"x": torch.tensor(x / 16, dtype=torch.float32), "labels": int(y)} for x, y in zip(digits.data[:600], digits.target)]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 10)

    def forward(self, x, labels):
        hidden = torch.sigmoid(self.first(x))
        gated = torch.tanh(self.second(hidden))
        gated = gated * hidden
        gated += x
        logits = self.head(gated)
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=32, num_train_epochs=5)
Trainer(Net(), args, train_dataset=rows).train()
