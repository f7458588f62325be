"""Loads a checkpoint onto the GPU, weights and optimizer, and goes on."""

import io

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

images, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits))

def build():
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


file = io.BytesIO()
old = build()
torch.save({"model": old.state_dict(), "optimizer": torch.optim.Adam(old.parameters()).state_dict()}, file)
file.seek(0)
checkpoint = torch.load(file, map_location="cuda:0")
net = build().cuda()
net.load_state_dict(checkpoint["model"])
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
optimizer.load_state_dict(checkpoint["optimizer"])
loader = DataLoader(data, batch_size=32, shuffle=True)

for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
