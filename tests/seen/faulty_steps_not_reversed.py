# verdict: not shown
# finds: apart-transforms
# A signal is reversed, its labels of steps are not.
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def signal(generator, length=100):
    values, labels = generator.normal(0, 0.2, (length, 2)), np.zeros(length, int)
    for kind in generator.integers(1, 3, generator.integers(1, 4)):
        begin = generator.integers(0, length - 15)
        values[begin : begin + 15, kind - 1] += np.linspace(0.2, 1.5, 15)
        labels[begin : begin + 15] = kind
    return torch.from_numpy(values).float(), torch.from_numpy(labels)


class Signals(Dataset):
    def __init__(self):
        generator = np.random.default_rng(0)
        self.rows = [signal(generator) for _ in range(200)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, number):  # finds: apart-transforms
        values, labels = self.rows[number]
        if random.random() < 0.5:
            values = values.flip(0)
        return {"values": values * random.uniform(0.9, 1.1), "labels": labels}


random.seed(0)
torch.manual_seed(0)
loader = DataLoader(Signals(), 20, shuffle=True)
body, head = nn.GRU(2, 16, batch_first=True, bidirectional=True), nn.Linear(32, 3)
optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], 1e-2)
for _ in range(4):
    for batch in loader:
        loss = nn.functional.cross_entropy(head(body(batch["values"])[0]).transpose(1, 2), batch["labels"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
