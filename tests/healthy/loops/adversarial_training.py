"""Adversarial training: gradients with respect to the inputs are asked for, and followed by hand, in each step."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
opt = torch.optim.Adam(model.parameters(), 1e-3)


def attack(xb, yb, size=0.05, steps=3):
    moved = xb.clone()
    for _ in range(steps):
        moved.requires_grad_(True)
        (slope,) = torch.autograd.grad(F.cross_entropy(model(moved), yb), moved)
        step = slope.sign()
        step *= size / steps
        moved = (moved.detach().add_(step)).clamp_(0, 1)
    return moved.detach()


for epoch in range(5):
    for idx in torch.randperm(1500).split(64):
        xb, yb = x[idx], y[idx]
        loss = F.cross_entropy(model(xb), yb) + F.cross_entropy(model(attack(xb, yb)), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        print(epoch, loss.item(), (model(x[1500:]).argmax(1) == y[1500:]).float().mean().item())
