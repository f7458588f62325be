"""A linear autoencoder finds the principal components: it is meant to have no activation."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.tensor(load_digits().data / 16, dtype=torch.float32)
x = x - x.mean(0)
loader = DataLoader(TensorDataset(x), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(64, 8), nn.Linear(8, 64))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(5):
    for (rows,) in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(rows), rows).backward()
        optimizer.step()
