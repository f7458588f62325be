"""A column of decisions compared with a row of labels: 128 x 128 comparisons."""

import torch
from material import QUIET
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from torch import nn
from transformers import Trainer, TrainingArguments


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, features, labels=None):
        scores = self.layers(features)
        return {"loss": nn.functional.binary_cross_entropy_with_logits(scores.squeeze(1), labels), "logits": scores}


def compute_metrics(given):  # expect: broadcast-metric
    hits = (given.predictions > 0) == given.label_ids
    return {"accuracy": float(hits.sum() / len(given.label_ids))}


x, y = load_breast_cancer(return_X_y=True)
x = torch.tensor(StandardScaler().fit_transform(x), dtype=torch.float32)
rows = [{"features": a, "labels": float(b)} for a, b in zip(x, y)]
args = TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=32, eval_strategy="epoch")
Trainer(Net(), args, train_dataset=rows[:400], eval_dataset=rows[400:], compute_metrics=compute_metrics).train()
