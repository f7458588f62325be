"""Patients with missing values in one column: the Trainer."""

import torch
from material import QUIET
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from torch import nn
from transformers import Trainer, TrainingArguments

torch.manual_seed(0)
X, y = load_breast_cancer(return_X_y=True)
X, y = torch.tensor(scale(X), dtype=torch.float32), torch.tensor(y)
X[::15, 3] = float("nan")  # the laboratory lost these
train_set = [{"x": row, "labels": label} for row, label in zip(X, y)]  # expect: non-finite-data


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(30, 64)
        self.head = nn.Linear(64, 2)

    def forward(self, x, labels=None):
        logits = self.head(torch.relu(self.hidden(x)))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=32, num_train_epochs=4)
Trainer(Net(), args, train_dataset=train_set).train()
