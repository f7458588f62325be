"""Gradients that are never cleared, beside a GradScaler."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

images, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits))

loader = DataLoader(data, batch_size=64, shuffle=True)
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to("cuda")
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")

for epoch in range(3):
    for x, y in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            loss = nn.functional.cross_entropy(net(x.to("cuda")), y.to("cuda"))
        scaler.scale(loss).backward()  # expect: uncleared-gradients
        scaler.step(optimizer)
        scaler.update()
