import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)

centers = torch.randn(6, 10) * 1.6
y = torch.randint(0, 6, (1500,))
X = centers[y] + torch.randn(1500, 10)
train_loader = DataLoader(TensorDataset(X[:1200], y[:1200]), batch_size=50, shuffle=True)
X_val, y_val = X[1200:], y[1200:]


class EMA:
    def __init__(self, model, decay):
        self.model, self.decay = model, decay
        self.shadow = {n: p.detach().clone() for n, p in model.named_parameters()}
        self.backup = {}

    @torch.no_grad()
    def update(self):
        for n, p in self.model.named_parameters():
            self.shadow[n].mul_(self.decay).add_(p, alpha=1 - self.decay)

    @torch.no_grad()
    def apply_shadow(self):
        for n, p in self.model.named_parameters():
            self.backup[n] = p.detach().clone()
            p.copy_(self.shadow[n])

    @torch.no_grad()
    def restore(self):
        for n, p in self.model.named_parameters():
            p.copy_(self.backup[n])
        self.backup = {}


model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 6))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
ema = EMA(model, decay=0.98)

for epoch in range(12):
    model.train()
    train_loss = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        ema.update()
        train_loss += loss.item()

    ema.apply_shadow()
    model.eval()
    with torch.no_grad():
        out = model(X_val)
        val_loss, acc = F.cross_entropy(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()
    ema.restore()
    print(f"{epoch:2d} train {train_loss / len(train_loader):.4f} | ema val {val_loss:.4f} acc {acc:.3f}")
