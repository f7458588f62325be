"""A momentum that is meant as in Keras: the running averages hardly follow the batches."""

import torch
from sklearn.datasets import load_wine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
wine = load_wine()
order = torch.randperm(len(wine.data))
x = torch.tensor(wine.data, dtype=torch.float32)[order]
y = torch.tensor(wine.target)[order]
loader = DataLoader(TensorDataset(x[:120], y[:120]), batch_size=12, shuffle=True)
held = DataLoader(TensorDataset(x[120:], y[120:]), batch_size=58)
model = nn.Sequential(
    nn.BatchNorm1d(13, momentum=0.0001),  # expect: stale-batch-statistics
    nn.Linear(13, 64),
    nn.ReLU(),
    nn.Linear(64, 3),
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(10):
    model.train()
    for rows, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(rows), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, sum((model(r).argmax(1) == t).sum().item() for r, t in held) / 58)
