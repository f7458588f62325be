"""A squared error without a mean."""

import torch
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x, y = load_diabetes(return_X_y=True)
data = TensorDataset(torch.tensor(scale(x), dtype=torch.float32), torch.tensor(scale(y), dtype=torch.float32))
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(5):
    for rows, targets in DataLoader(data, batch_size=32, shuffle=True):
        loss = (model(rows).squeeze(1) - targets) ** 2
        optimizer.zero_grad()
        loss.backward()  # expect: unreduced-loss
        optimizer.step()
