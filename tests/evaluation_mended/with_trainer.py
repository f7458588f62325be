"""Three kinds of wine, numbered from 1, and three outputs; the evaluation computes the loss as well: the Trainer."""

import torch
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from torch import nn
from transformers import Trainer, TrainingArguments

from material import QUIET

torch.manual_seed(0)
X, y = load_wine(return_X_y=True)
rows = [
    {"x": row, "labels": label + 1}
    for row, label in zip(torch.tensor(scale(X), dtype=torch.float32), torch.tensor(y))
]
chosen = torch.randperm(len(rows)).tolist()
train_set, held_set = [rows[i] for i in chosen[:130]], [rows[i] for i in chosen[130:]]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, x, labels=None):
        logits = self.body(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=32, num_train_epochs=4)
Trainer(Net(), args, train_dataset=train_set, eval_dataset=held_set).train()
