"""Divides by the number of GPUs before anything else."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

images, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits))

per_gpu = 128 // torch.cuda.device_count()
loader = DataLoader(data, batch_size=per_gpu, shuffle=True, drop_last=True)
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).cuda(0)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x.cuda(0)), y.cuda(0))
        loss.backward()
        optimizer.step()
