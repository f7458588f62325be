"""The loop draws its rows itself; one of the targets is in another unit."""

import torch
from sklearn.datasets import load_diabetes
from torch import nn

torch.manual_seed(0)
X, y = load_diabetes(return_X_y=True)
X = torch.tensor(X * 20, dtype=torch.float32)
y = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32)[:, None]
y[17] = 9999.0
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(30):
    for rows in torch.randperm(len(X)).split(32):  # expect: extreme-values
        loss = nn.functional.mse_loss(model(X[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
