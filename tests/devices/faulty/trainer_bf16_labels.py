"""A Trainer in bf16 whose labels reach 9, for nine outputs."""

import torch
from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments

images, digits = load_digits(return_X_y=True)
rows = [{"x": x, "labels": y} for x, y in zip((images / 16).astype("float32"), digits)]
settings = {name: value for name, value in QUIET.items() if name != "use_cpu"}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 9))  # expect: label-out-of-range

    def forward(self, x, labels=None):
        scores = self.body(x)
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}


args = TrainingArguments(**settings, bf16=True, learning_rate=1e-2, num_train_epochs=2)
Trainer(Net().cuda(), args, train_dataset=rows).train()
