"""The second process ends before it trains."""

import os

import torch
from torch import nn

if os.environ["RANK"] == "1":
    raise RuntimeError("no such disk")
torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long()
model = nn.Linear(8, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for _ in range(20):
    for i in range(0, 256, 32):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[i : i + 32]), y[i : i + 32]).backward()
        optimizer.step()
