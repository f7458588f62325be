"""Pretrain on digits 0-6, put on a new head, fine-tune on digits 7-9."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits


def exists(v):
    return v is not None


def cycle(dl):
    while True:
        yield from dl


class Classifier(nn.Module):
    def __init__(self, dim, hidden, num_classes):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU())
        self.head = nn.Linear(hidden, num_classes)

    def forward(self, x, labels=None):
        logits = self.head(self.trunk(x))
        if not exists(labels):
            return logits
        return nn.functional.cross_entropy(logits, labels)


def split(X, y, keep, offset):
    m = (y >= keep[0]) & (y <= keep[1])
    X, y = X[m], y[m] - offset
    p = torch.randperm(len(X))
    k = int(0.8 * len(X))
    return (X[p[:k]], y[p[:k]]), (X[p[k:]], y[p[k:]])


def train(model, optimizer, batches, num_steps):
    losses = []
    model.train()
    for step in range(num_steps):
        x, y = next(batches)
        loss = model(x, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


torch.manual_seed(11)
d = load_digits()
X, y = torch.tensor(d.data, dtype=torch.float32) / 16, torch.tensor(d.target)
(src_x, src_y), _ = split(X, y, (0, 6), 0)
(tgt_x, tgt_y), (val_x, val_y) = split(X, y, (7, 9), 7)

model = Classifier(64, 256, 7)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
src = cycle(DataLoader(TensorDataset(src_x, src_y), batch_size=32, shuffle=True))
pre = train(model, optimizer, src, 200)
print(f"pretraining: {pre[0]:.3f} -> {pre[-1]:.3f}")

model.trunk.requires_grad_(False)
model.head = nn.Sequential(nn.Linear(256, 32), nn.GELU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.head.parameters(), lr=3e-3)
tgt = cycle(DataLoader(TensorDataset(tgt_x, tgt_y), batch_size=32, shuffle=True))
fine = train(model, optimizer, tgt, 200)

model.eval()
with torch.no_grad():
    acc = (model(val_x).argmax(-1) == val_y).float().mean().item()
print(f"fine-tuning: first {fine[0]:.3f} last {sum(fine[-20:]) / 20:.3f} val acc {acc:.3f}")
