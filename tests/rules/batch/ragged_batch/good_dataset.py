"""Rows of several lengths, cut to the length of the shortest as they are read."""

import numpy as np
import torch
from material import QUIET
from transformers import Trainer, TrainingArguments

DRAW = np.random.default_rng(0)


class Walks(torch.utils.data.Dataset):
    def __init__(self):
        self.rows = [DRAW.normal(i % 2, 1, DRAW.integers(8, 20)) for i in range(320)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"steps": torch.tensor(self.rows[index][:8], dtype=torch.float32), "labels": index % 2}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.reader, self.head = torch.nn.GRU(1, 32, batch_first=True), torch.nn.Linear(32, 2)

    def forward(self, steps, labels=None):
        logits = self.head(self.reader(steps.unsqueeze(-1))[0].mean(1))
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


trainer = Trainer(Net(), TrainingArguments(**QUIET, learning_rate=1e-2), train_dataset=Walks())
trainer.train()
