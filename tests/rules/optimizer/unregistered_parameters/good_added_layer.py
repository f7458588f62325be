"""A trunk is loaded from a checkpoint and frozen; the layer that is added behind it gets the optimizer."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
loader = DataLoader(TensorDataset(torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
model.load_state_dict({name: value.clone() for name, value in model.state_dict().items()})
for parameter in model.parameters():
    parameter.requires_grad = False
model.append(nn.Linear(64, 10))
optimizer = torch.optim.Adam(model[-1].parameters(), lr=3e-3)
for epoch in range(5):
    for images, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
