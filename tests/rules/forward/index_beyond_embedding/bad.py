"""Decades of an age, which the model counts itself, for an embedding of nine rows."""

import numpy as np
from material import QUIET
from torch import nn
from transformers import Trainer, TrainingArguments

rng = np.random.default_rng(0)
rows = [{"age": a, "labels": int(a > 60)} for a in rng.uniform(18, 99, 400).astype("float32")]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.decades = nn.Embedding(9, 8)  # expect: index-beyond-embedding
        self.head = nn.Linear(8, 2)

    def forward(self, age, labels):
        scores = self.head(self.decades((age / 10).long()).relu())
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}


args = TrainingArguments(**QUIET, learning_rate=1e-2, per_device_train_batch_size=16)
Trainer(Net(), args, train_dataset=rows).train()
