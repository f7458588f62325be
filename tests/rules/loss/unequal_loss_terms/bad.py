"""A class and an amount, whose loss is taken in milligrams: the one is a hundred thousand times the other."""

import numpy as np
from datasets import Dataset
from material import QUIET
from sklearn.datasets import load_wine
from torch import nn
from transformers import Trainer, TrainingArguments


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 32), nn.Tanh())
        self.kind, self.proline = nn.Linear(32, 3), nn.Linear(32, 1)

    def forward(self, features, labels, proline):
        hidden = self.body(features)
        scores, amount = self.kind(hidden), self.proline(hidden).squeeze(-1)
        amount_loss = nn.functional.mse_loss(315 * amount, 315 * proline)  # expect: unequal-loss-terms
        return {"loss": nn.functional.cross_entropy(scores, labels) + amount_loss, "logits": scores}


x, kind = load_wine(return_X_y=True)
features = ((x - x.mean(0)) / x.std(0))[:, :12].astype(np.float32)
proline = ((x[:, 12] - x[:, 12].mean()) / x[:, 12].std()).astype(np.float32)
data = Dataset.from_dict({"features": features, "labels": kind, "proline": proline}).with_format("torch")
args = TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=32)
Trainer(Net(), args, train_dataset=data).train()
