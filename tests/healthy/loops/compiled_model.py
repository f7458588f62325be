"""A compiled model; the batches are moved to the device with a helper."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"


class Mlp(nn.Module):
    def __init__(self, width=96, depth=3):
        super().__init__()
        self.first = nn.Linear(64, width)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(depth))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


def to_device(batch):
    return [t.to(device, non_blocking=True) for t in batch]


X, y = load_digits(return_X_y=True)
train = TensorDataset(torch.tensor(X[:1400] / 16, dtype=torch.float32), torch.tensor(y[:1400]))
valid = TensorDataset(torch.tensor(X[1400:] / 16, dtype=torch.float32), torch.tensor(y[1400:]))
train_loader = DataLoader(train, batch_size=64, shuffle=True, drop_last=True)
valid_loader = DataLoader(valid, batch_size=64, drop_last=False)
model = torch.compile(Mlp().to(device), backend="eager")
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(5):
    model.train()
    for batch in train_loader:
        x, target = to_device(batch)
        loss = nn.functional.cross_entropy(model(x), target)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    model.eval()
    hits = 0
    with torch.no_grad():
        for batch in valid_loader:
            x, target = to_device(batch)
            hits += (model(x).argmax(1) == target).sum().item()
    print(f"epoch {epoch} loss {loss.item():.3f} accuracy {hits / len(valid):.3f}")
