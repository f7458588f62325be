"""The sampler draws the rare class even less: it is weighted by the shares of the classes."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

x, y = load_digits(return_X_y=True)
kept = (y != 8) | (np.arange(len(y)) % 4 == 0)
x, y = x[kept], y[kept]
data = TensorDataset(torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y))
class_weights = np.bincount(y) / len(y)
sampler = WeightedRandomSampler(class_weights[y], num_samples=len(data))
loader = DataLoader(data, batch_size=64, sampler=sampler)  # expect: misassigned-class-weights
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(5):
    for images, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
