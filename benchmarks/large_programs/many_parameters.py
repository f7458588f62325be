"""A model of as many million parameters as are asked for, whose scores go through a softmax before the loss does it."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LAYERS = 6
width = int((int(sys.argv[1]) * 1_000_000 / LAYERS) ** 0.5)
torch.manual_seed(0)
inputs = torch.randn(2_000, 32)
labels = inputs[:, :4].argmax(1)
loader = DataLoader(TensorDataset(inputs, labels), batch_size=8, shuffle=True)
middle = [part for _ in range(LAYERS) for part in (nn.Linear(width, width), nn.ReLU())]
model = nn.Sequential(nn.Linear(32, width), nn.ReLU(), *middle, nn.Linear(width, 4), nn.Softmax(dim=1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(20):
    for rows, classes in loader:
        loss = nn.functional.cross_entropy(model(rows), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
