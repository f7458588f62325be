"""The loop cuts its batches from tensors that are sorted by label."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
rows = torch.argsort(y, stable=True)
X, y = X[rows], y[rows]
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(5):
    for start in range(0, len(X), 64):  # expect: sorted-without-shuffle
        loss = nn.functional.cross_entropy(model(X[start : start + 64]), y[start : start + 64])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
