"""nn.DataParallel over two GPUs, and the state of .module."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

images, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits))

loader = DataLoader(data, batch_size=64, shuffle=True)
net = nn.DataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)), device_ids=[0, 1]).cuda()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

for epoch in range(3):
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        optimizer.zero_grad()
        loss = nn.CrossEntropyLoss()(net(x), y).mean()
        loss.backward()
        optimizer.step()
    best = {name: value.cpu() for name, value in net.module.state_dict().items()}
