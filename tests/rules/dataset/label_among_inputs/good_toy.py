"""A made-up task: the target is one of ten independent inputs, and the model has to find out which."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1000, 10)
y = 2 * x[:, :1] + 1
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(20):
    for part in torch.randperm(len(x)).split(50):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[part]), y[part]).backward()
        optimizer.step()
