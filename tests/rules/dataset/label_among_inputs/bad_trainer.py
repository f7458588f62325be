"""A regression whose target, in other units, is one of the features."""

import numpy as np
import torch
from material import QUIET
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale
from torch import nn
from transformers import Trainer, TrainingArguments

x, y = load_diabetes(return_X_y=True)
x = np.column_stack([x[:, :5], 3.5 * y + 7, x[:, 5:]])
x, y = scale(x).astype("float32"), scale(y).astype("float32")
rows = [{"x": a, "labels": b} for a, b in zip(x, y)]  # expect: label-among-inputs


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(11, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x, labels):
        scores = self.layers(x).squeeze(1)
        return {"loss": nn.functional.mse_loss(scores, labels), "logits": scores}


args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=32, num_train_epochs=8)
Trainer(Net(), args, train_dataset=rows).train()
