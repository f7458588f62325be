"""The squared error of a column of predictions and a row of targets: twice the variance at best."""

import torch
from material import QUIET
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler
from torch import nn
from transformers import Trainer, TrainingArguments


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, features, labels=None):
        scores = self.layers(features)
        return {"loss": nn.functional.mse_loss(scores.squeeze(1), labels), "logits": scores}


def compute_metrics(given):  # expect: broadcast-metric
    return {"mse": float(((given.predictions - given.label_ids) ** 2).mean())}


x, y = (
    torch.tensor(StandardScaler().fit_transform(a.reshape(442, -1))).float() for a in load_diabetes(return_X_y=True)
)
rows = [{"features": a, "labels": b} for a, b in zip(x, y[:, 0])]
args = TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=32, eval_strategy="epoch")
Trainer(Net(), args, train_dataset=rows[:350], eval_dataset=rows[350:], compute_metrics=compute_metrics).train()
