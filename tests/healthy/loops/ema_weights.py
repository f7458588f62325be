"""A moving average of the weights beside the trained ones, updated after each step and used for the evaluation."""

import copy

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class EMA:
    def __init__(self, model, decay=0.98):
        self.decay = decay
        self.shadow = copy.deepcopy(model).eval()
        for p in self.shadow.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.mul_(self.decay).add_(p, alpha=1 - self.decay)
        for s, b in zip(self.shadow.buffers(), model.buffers()):
            s.copy_(b)


torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X, dtype=torch.float32) / 16, torch.tensor(y)
loader = DataLoader(TensorDataset(X[:1400], y[:1400]), batch_size=40, shuffle=True)
model = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.SiLU(), nn.Linear(64, 10))
ema = EMA(model)
optimizer = torch.optim.RAdam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(6):
    for inputs, labels in loader:
        loss = criterion(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(model)
    with torch.no_grad():
        acc = (ema.shadow(X[1400:]).argmax(1) == y[1400:]).float().mean()
    print(f"epoch {epoch} loss {loss.item():.3f} ema accuracy {acc.item():.3f}")
