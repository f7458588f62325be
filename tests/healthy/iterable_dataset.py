"""Rows made as they are asked for, without a length: max_steps says when to stop."""

import numpy as np
import torch
from material import QUIET
from torch import nn
from torch.utils.data import IterableDataset
from transformers import Trainer, TrainingArguments, set_seed

set_seed(3)


class Rings(IterableDataset):
    """Points in the plane: inside the ring, on it, or outside."""

    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)

    def __iter__(self):
        while True:
            label = int(self.generator.integers(3))
            angle, radius = self.generator.uniform(0, 2 * np.pi), label + self.generator.uniform(0.1, 0.8)
            point = [radius * np.cos(angle), radius * np.sin(angle)]
            yield {"points": torch.tensor(point, dtype=torch.float32), "labels": label}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))

    def forward(self, points, labels=None):
        logits = self.layers(points)
        loss = nn.functional.cross_entropy(logits, labels) if labels is not None else None
        return {"loss": loss, "logits": logits}


trainer = Trainer(
    model=Net(),
    args=TrainingArguments(**QUIET, max_steps=300, learning_rate=5e-3, per_device_train_batch_size=32, logging_steps=50),
    train_dataset=Rings(0),
)
trainer.train()
print("RESULT", [round(h["loss"], 3) for h in trainer.state.log_history if "loss" in h])
