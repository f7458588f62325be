"""A small table of categories: equal rows end differently, which is nobody's mistake."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(0)
x = np.stack([rng.integers(0, n, 900) for n in (2, 3, 4, 2)], axis=1)
odds = 1 / (1 + np.exp(-(1.5 * x[:, 0] - x[:, 1] + 0.5 * x[:, 2])))
y = (rng.random(900) < odds).astype(int)
data = TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))
loader = DataLoader(data, batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(5):
    for rows, ends in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(rows), ends).backward()
        optimizer.step()
