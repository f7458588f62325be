"""A softmax over one unit, for a question of yes or no."""

import torch
from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments

images, digits = load_digits(return_X_y=True)
rows = [{"x": x, "labels": y} for x, y in zip((images / 16).astype("float32"), digits)][:600]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(64, 64)
        self.head = nn.Linear(64, 1)

    def forward(self, x, labels):
        score = self.head(self.body(x).relu())
        share = torch.softmax(score, dim=-1).squeeze(-1)  # expect: one-unit-softmax
        loss = nn.functional.binary_cross_entropy(share, (labels > 4).float())
        return {"loss": loss, "logits": share}

args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=16)
Trainer(Net(), args, train_dataset=rows).train()
