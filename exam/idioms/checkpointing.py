"""Residual blocks under activation checkpointing; the task is the parity of 3 bits out of 12."""
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(23)


def parity_data(n):
    bits = torch.randint(0, 2, (n, 12)).float()
    label = (bits[:, 1] + bits[:, 5] + bits[:, 8]) % 2
    return bits * 2 - 1, label


class Residual(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        return x + self.ff(self.norm(x))


class Net(nn.Module):
    def __init__(self, dim=32, depth=3):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(12, dim), *[Residual(dim) for _ in range(depth)])
        self.head = nn.Linear(dim, 1)

    def forward(self, x):
        x = checkpoint(self.trunk, x, use_reentrant=False)
        return self.head(x).squeeze(-1)


loader = DataLoader(TensorDataset(*parity_data(1500)), batch_size=50, shuffle=True)
x_val, y_val = parity_data(500)
model = Net()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)

for epoch in range(10):
    model.train()
    epoch_loss = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
    model.eval()
    with torch.no_grad():
        acc = ((model(x_val) > 0) == (y_val > 0.5)).float().mean().item()
    print(f"epoch {epoch} loss {epoch_loss / len(loader):.4f} val acc {acc:.3f}")
