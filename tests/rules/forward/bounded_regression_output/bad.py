"""Standardised targets, and a sigmoid at the end."""

import torch
from material import QUIET
from sklearn.datasets import load_diabetes
from torch import nn
from transformers import Trainer, TrainingArguments

columns, progress = load_diabetes(return_X_y=True)
target = (progress - progress.mean()) / progress.std()
rows = [{"x": x, "labels": y} for x, y in zip((columns / columns.std(0)).astype("float32"), target.astype("float32"))]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x, labels):
        answer = torch.sigmoid(self.body(x)).squeeze(-1)  # expect: bounded-regression-output
        return {"loss": nn.functional.mse_loss(answer, labels), "logits": answer}

args = TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=16)
Trainer(Net(), args, train_dataset=rows).train()
