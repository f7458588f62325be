"""Scores, not classes, for a metric of the library `evaluate`, which takes integers."""

import evaluate
import torch
from material import METRIC, QUIET
from torch import nn
from transformers import Trainer, TrainingArguments


class Rows(torch.utils.data.Dataset):
    def __init__(self, n, seed):
        generator = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, 10, generator=generator)
        self.y = (self.x[:, :3].sum(1) > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "labels": self.y[i]}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x, labels=None):
        logits = self.body(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


metric = evaluate.load(METRIC)


def compute_metrics(pair):
    logits, labels = pair
    return metric.compute(predictions=logits, references=labels)  # expect: metrics-on-logits


arguments = TrainingArguments(**QUIET, eval_strategy="epoch", num_train_epochs=5, learning_rate=3e-3)
trainer = Trainer(
    Net(), arguments, train_dataset=Rows(1000, 0), eval_dataset=Rows(200, 1), compute_metrics=compute_metrics
)
trainer.train()
