"""Devices that are read off parameters and tensors, after one move."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

images, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits))

net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).cuda()
device = next(net.parameters()).device
loader = DataLoader(data, batch_size=32, shuffle=True)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        scores = net(x.to(device))
        loss = nn.functional.cross_entropy(scores, y.to(scores.device))
        loss.backward()
        optimizer.step()
