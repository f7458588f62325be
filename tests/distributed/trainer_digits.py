"""A Trainer on two processes."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments

from material import QUIET


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, x, labels=None):
        logits = self.net(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


x, y = load_digits(return_X_y=True)
rows = [{"x": torch.tensor(a / 16, dtype=torch.float32), "labels": int(b)} for a, b in zip(x, y)]
args = TrainingArguments(**QUIET, per_device_train_batch_size=32, num_train_epochs=4, learning_rate=3e-3)
Trainer(Net(), args, train_dataset=rows[:1400], eval_dataset=rows[1400:]).train()
