"""The moved batch is not kept: to() of a tensor returns another one."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

X, y = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y))
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to("cuda")
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(5):
    for images, digits in DataLoader(data, batch_size=64, shuffle=True):
        optimizer.zero_grad()
        images.to("cuda")
        loss = nn.functional.cross_entropy(model(images), digits.to("cuda"))  # expect: mixed-devices
        loss.backward()
        optimizer.step()
