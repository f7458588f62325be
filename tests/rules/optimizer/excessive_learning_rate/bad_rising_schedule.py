"""A schedule that raises the rate by a tenth each epoch."""

import torch
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows, targets = load_diabetes(return_X_y=True)
x = torch.tensor(StandardScaler().fit_transform(rows), dtype=torch.float32)
y = torch.tensor((targets - targets.mean()) / targets.std(), dtype=torch.float32)
train = DataLoader(TensorDataset(x[:360], y[:360]), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=1.1)  # expect: excessive-learning-rate

for epoch in range(60):
    model.train()
    for rows, targets in train:
        loss = nn.functional.mse_loss(model(rows).squeeze(1), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    schedule.step()
    model.eval()
    with torch.no_grad():
        print(f"epoch {epoch}: val mse {nn.functional.mse_loss(model(x[360:]).squeeze(1), y[360:]):.3f}")
