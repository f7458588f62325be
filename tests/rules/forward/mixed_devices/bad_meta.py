"""The model is on the device that keeps no values."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

X, y = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y))
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to("meta")
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(5):
    for images, digits in DataLoader(data, batch_size=64, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), digits)  # expect: mixed-devices
        loss.backward()
        optimizer.step()
