"""Mixup: the step mixes each image with another one, and compares it with both labels."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x, y = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y))
loader = DataLoader(data, batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(3):
    for images, labels in loader:
        order, share = torch.randperm(len(images)), 0.8
        scores = model(share * images + (1 - share) * images[order])
        optimizer.zero_grad()
        loss = share * nn.functional.cross_entropy(scores, labels)
        loss = loss + (1 - share) * nn.functional.cross_entropy(scores, labels[order])
        loss.backward()
        optimizer.step()
