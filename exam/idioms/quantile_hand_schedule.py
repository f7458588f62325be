import math
from types import SimpleNamespace

import torch
from torch import nn

cfg = SimpleNamespace(seed=9, epochs=20, bs=50, lr=1e-2, decay=0.85, quantiles=(0.1, 0.5, 0.9))
torch.manual_seed(cfg.seed)


def make(n):
    x = torch.rand(n, 1) * 6 - 3
    y = 3 * torch.sin(1.5 * x) + (0.2 + 0.3 * x.abs()) * torch.randn(n, 1)
    return x, y


x, y = make(1500)
xv, yv = make(400)
q = torch.tensor(cfg.quantiles)


def pinball(pred, target):
    err = target - pred
    return torch.maximum(q * err, (q - 1) * err).mean()


def set_lr(optimizer, value):
    for group in optimizer.param_groups:
        group["lr"] = value


model = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, len(q)))
optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
step = 0
for epoch in range(cfg.epochs):
    total = 0.0
    for part in torch.randperm(len(x)).split(cfg.bs):
        set_lr(optimizer, cfg.lr * cfg.decay**epoch)
        loss = pinball(model(x[part]), y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(part)
        step += 1
    if epoch % 4 == 3:
        with torch.no_grad():
            pv = model(xv)
            vl = pinball(pv, yv).item()
            cover = ((yv > pv[:, :1]) & (yv < pv[:, 2:])).float().mean().item()
        rate = optimizer.param_groups[0]["lr"]
        print(f"epoch {epoch} lr {rate:.2e} train {total / len(x):.4f} val {vl:.4f} cover {cover:.2f}")
assert math.isfinite(vl)
print(f"FINAL val pinball {vl:.4f} cover {cover:.2f}")
