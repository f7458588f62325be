"""Costs as regression targets, standardized."""

import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, progression = load_diabetes(return_X_y=True)
X = torch.tensor(X / X.std(axis=0), dtype=torch.float32)
cost = torch.tensor(2500.0 + 1000.0 * progression, dtype=torch.float32).unsqueeze(1)
cost = (cost - cost.mean()) / cost.std()
train_data = TensorDataset(X[:360], cost[:360])
loader = DataLoader(train_data, batch_size=36, shuffle=True)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loss_fn = nn.MSELoss()
for epoch in range(20):
    total = 0.0
    for batch in loader:
        features, target = batch
        loss = loss_fn(model(features), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
print(f"train {total / len(loader):.4g} of variance {cost.var().item():.4g}")
