"""The columns of the test table are sorted by name, those of the training table are not."""

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(0)
table = pd.DataFrame(rng.normal(size=(900, 4)), columns=["weight", "height", "dose", "age"])
table["recovered"] = (table["weight"] + 0.5 * table["dose"] > 0).astype(int)
train, test = table[:700], table[700:]
inputs = ["weight", "height", "dose", "age"]


def rows(part, columns):
    """The columns, and the labels."""
    values = torch.tensor(part[columns].to_numpy().copy(), dtype=torch.float32)
    return TensorDataset(values, torch.tensor(part["recovered"].to_numpy()))


loader = DataLoader(rows(train, inputs), batch_size=32, shuffle=True)
held = DataLoader(rows(test, sorted(inputs)), batch_size=64)  # expect: differently-prepared-sets
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(5):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, sum((model(x).argmax(1) == y).sum().item() for x, y in held) / len(test))
