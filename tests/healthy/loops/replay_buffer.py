"""A loop that first fills a buffer for many rounds, and then updates in each tenth round from what it draws there."""

import random

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)
weight = torch.randn(6)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
buffer = []
for step in range(6000):
    seen = torch.randn(6)
    buffer.append((seen, (seen @ weight).tanh()))
    if step > 400 and step % 10 == 0:
        rows = random.sample(buffer, 32)
        inputs, targets = torch.stack([r[0] for r in rows]), torch.stack([r[1] for r in rows])
        loss = nn.functional.mse_loss(model(inputs).squeeze(1), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    inputs = torch.randn(500, 6)
    print("test loss", nn.functional.mse_loss(model(inputs).squeeze(1), (inputs @ weight).tanh()).item())
