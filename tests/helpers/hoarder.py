"""A script that keeps state wherever Python lets it: counters, caches, streams, a loose generator, a global model."""

import io
import itertools
from collections import Counter

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import IterableDataset
from transformers import Trainer, TrainingArguments, set_seed

from material import QUIET

set_seed(0)
x, y = load_digits(return_X_y=True)
x = ((x - 8) / 8).astype("float32")
noise = np.random.default_rng(3)
served, calls = Counter(), 0
stream = iter(np.random.default_rng(1).permutation(len(x)).tolist() * 3)
rates = io.StringIO("\n".join(f"{0.1 + 0.01 * i:.2f}" for i in range(50_000)))
probe = nn.BatchNorm1d(64)
moving = np.zeros(10)


def scale():
    served["scale"] += 1
    return float(next(rates))


class Stream(IterableDataset):
    made = 0

    def __init__(self):
        self.last, self.order = None, (i for i in stream)

    def __iter__(self):
        for i in self.order:
            Stream.made += 1
            self.last = i
            moving[y[i]] += 1
            shift = scale() * noise.standard_normal() * moving[y[i]] / moving.sum() + Stream.made * 1e-6
            yield {"x": x[i] + np.float32(shift), "labels": int(y[i])}


def collate(items):
    global calls
    calls += 1
    pixels = torch.stack([torch.as_tensor(i["x"]) for i in items])
    return {"x": probe(pixels).detach() * (1 + calls / 1000), "labels": torch.tensor([i["labels"] for i in items])}


class Counting(Trainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.calls, self.weights = itertools.count(1), torch.ones(10)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        scores = model(**inputs)
        self.weights += 0.01 * next(self.calls) * torch.rand(10)
        loss = nn.functional.cross_entropy(scores, labels, weight=self.weights)
        return (loss, {"logits": scores}) if return_outputs else loss


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10))
        self.seen = 0

    def forward(self, x):
        self.seen += 1
        return self.layers(x) * (1 + 1 / self.seen)


args = TrainingArguments(
    **QUIET, max_steps=60, learning_rate=3e-3, per_device_train_batch_size=32, remove_unused_columns=False
)
trainer = Counting(model=Net(), args=args, train_dataset=Stream(), data_collator=collate)
trainer.train()
