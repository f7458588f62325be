"""Hidden layers in a ModuleList."""

import torch
import torch.nn.functional as F
from material import QUIET
from sklearn.datasets import load_digits
from torch import nn
from transformers import Trainer, TrainingArguments

digits = load_digits()
rows = [{"x": torch.tensor(x / 16, dtype=torch.float32), "labels": int(y)} for x, y in zip(digits.data[:600], digits.target)]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(64, 48), nn.Linear(48, 48)])
        self.head = nn.Linear(48, 10)

    def forward(self, x, labels):
        for layer in self.layers:
            x = F.relu(layer(x))
        logits = self.head(x)
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


args = TrainingArguments(**QUIET, learning_rate=3e-3, per_device_train_batch_size=32, num_train_epochs=5)
Trainer(Net(), args, train_dataset=rows).train()
