"""A recurrent network whose head is called at every step, and one number to predict for each row."""

import numpy as np
import torch
from datasets import Dataset
from material import QUIET
from torch import nn
from transformers import Trainer, TrainingArguments


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.recurrent = nn.GRU(3, 16, batch_first=True)  # expect: outputs-per-step
        self.head = nn.Linear(16, 1)
        self.loss = nn.MSELoss()

    def forward(self, series, labels):
        states, _ = self.recurrent(series)
        values = self.head(states)
        return {"loss": self.loss(values, labels), "logits": values}


torch.manual_seed(0)
series = np.random.default_rng(0).normal(size=(400, 12, 3)).astype("float32")
data = Dataset.from_dict({"series": series, "labels": series[:, -1, :1].sum(axis=1)}).with_format("torch")
args = TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=32)
Trainer(Net(), args, train_dataset=data).train()
