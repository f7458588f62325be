"""Halves of images matched with each other inside a batch."""

import torch
from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments

images = (load_digits().images / 16).astype("float32").reshape(-1, 64)[:600]
rows = [{"left": x[:32], "right": x[32:]} for x in images]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, left, right):
        one = nn.functional.normalize(self.left(left), dim=1)
        other = nn.functional.normalize(self.right(right), dim=1)
        scores = one @ other.T / 0.1
        return {"loss": nn.functional.cross_entropy(scores, torch.arange(len(left))), "logits": scores}


args = TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=16)
Trainer(Net(), args, train_dataset=rows).train()
