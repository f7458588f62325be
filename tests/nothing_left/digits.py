"""A small task, and where a script is stopped to compare what it left until then."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X = torch.randn(256, 8)
Y = (X.sum(1) > 0).long()
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
loader = DataLoader(TensorDataset(X, Y), batch_size=16, shuffle=True)


def step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def stop_here():
    if os.environ.get("STOP"):
        raise SystemExit(0)
