"""The step hands its labels to the loss as they are."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
pixels, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(pixels / 16, dtype=torch.float32), torch.tensor(digits))
loader = DataLoader(data, batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(6):
    for features, target in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(features), target)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
