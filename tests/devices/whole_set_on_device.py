"""All data lie on the device from the beginning; batches are slices."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

images, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits))

X, Y = torch.tensor(images / 16).float().cuda(), torch.as_tensor(digits, device="cuda")
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).cuda()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

for epoch in range(3):
    order = torch.randperm(len(X), device="cuda")
    for start in range(0, len(X), 64):
        rows = order[start : start + 64]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(X[rows]), Y[rows])
        loss.backward()
        optimizer.step()
