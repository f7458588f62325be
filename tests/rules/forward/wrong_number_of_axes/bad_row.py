"""One number per row, without an axis for it."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.linspace(-3, 3, 256)
y = torch.sin(x)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(300):
    rows = torch.randint(0, 256, (32,))
    outputs = model(x[rows]).squeeze(-1)  # expect: wrong-number-of-axes
    loss = nn.functional.mse_loss(outputs, y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
