"""The mask hides a tenth of the pixels."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
loader = DataLoader(TensorDataset(torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)), 64, shuffle=True)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(5):
    for images, labels in loader:
        hidden = torch.rand_like(images) < 0.1
        loss = nn.functional.cross_entropy(model(images.masked_fill(hidden, 0.0)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
