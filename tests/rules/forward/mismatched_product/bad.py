"""A product that is written out, with the weights of another number of features."""

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
        self.first = nn.Linear(64, 32)
        self.weight = nn.Parameter(torch.randn(64, 10) / 8)

    def forward(self, x, labels):
        scores = self.first(x).relu() @ self.weight  # expect: mismatched-product
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}


args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=16)
Trainer(Net(), args, train_dataset=rows).train()
