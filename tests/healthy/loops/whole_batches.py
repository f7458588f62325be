"""A data set that knows whole batches only: no single row can be asked for."""

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset


class Cells(Dataset):
    def __init__(self):
        x, y = load_breast_cancer(return_X_y=True)
        self.x, self.y = torch.tensor(scale(x), dtype=torch.float32), torch.tensor(y)

    def __len__(self):
        return len(self.x)

    def __getitems__(self, rows):
        return list(zip(self.x[rows], self.y[rows]))


torch.manual_seed(0)
cells = Cells()
train, held_out = Subset(cells, range(0, 400)), Subset(cells, range(400, 569))
model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(5):
    model.train()
    for x, y in DataLoader(train, batch_size=32, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in DataLoader(held_out, batch_size=64))
    print(epoch, right / len(held_out))
