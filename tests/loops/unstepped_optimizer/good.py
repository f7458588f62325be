"""Backward and optimizer.step() in each step."""

import torch
import torch.nn as nn
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

torch.manual_seed(0)
X, y = load_wine(return_X_y=True)
order = torch.randperm(len(y))
X = torch.tensor(scale(X), dtype=torch.float32)[order]
y = torch.tensor(y)[order]
model = nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Linear(24, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

batch_size = 20
for epoch in range(10):
    for i in range(0, len(X), batch_size):
        batch_X, batch_y = X[i : i + batch_size], y[i : i + batch_size]
        optimizer.zero_grad()
        outputs = model(batch_X)
        loss = criterion(outputs, batch_y)
        loss.backward()
        optimizer.step()
    accuracy = (model(X).argmax(dim=1) == y).float().mean().item()
    print(f"Epoch {epoch + 1}, loss: {loss.item():.4f}, accuracy: {accuracy:.3f}")
