"""Accelerate in fp16 with labels beyond the outputs."""

import torch
from accelerate import Accelerator
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

images, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits))

accelerator = Accelerator(mixed_precision="fp16")
loader = DataLoader(data, batch_size=64, shuffle=True)
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 9))  # expect: label-out-of-range
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
net, optimizer, loader = accelerator.prepare(net, optimizer, loader)

for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        accelerator.backward(loss)
        optimizer.step()
