"""Windows of a series, each with the value that follows it."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
series = torch.sin(torch.arange(1200) / 9) + torch.sin(torch.arange(1200) / 23) + 0.1 * torch.randn(1200)
windows = series.unfold(0, 21, 1)
data = TensorDataset(windows[:, :20], windows[:, 20:])
model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    for x, y in DataLoader(data, batch_size=32, shuffle=True):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
