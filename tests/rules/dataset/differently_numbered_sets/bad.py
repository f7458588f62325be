"""Shops and weekdays are numbered by order of appearance, separately in the training and the test table."""

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(0)
shops = np.array(["Aalborg", "Bergen", "Cork", "Delft", "Espoo", "Faro", "Ghent", "Haifa"])
days = np.array(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
table = pd.DataFrame({"shop": rng.choice(shops, 1200), "day": rng.choice(days, 1200), "staff": rng.integers(1, 9, 1200)})
busy = table["shop"].isin(shops[::2]).to_numpy() ^ table["day"].isin(["Sat", "Sun"]).to_numpy()
table["busy"] = (busy ^ (rng.random(1200) < 0.05)).astype(int)
train, test = table[:900].copy(), table[900:].copy()
for part in (train, test):
    for column in ("shop", "day"):
        part[column], _ = pd.factorize(part[column])


def tensors(part):
    """The categories, and the labels."""
    return TensorDataset(torch.tensor(part[["shop", "day", "staff"]].to_numpy()), torch.tensor(part["busy"].to_numpy()))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.shop, self.day, self.staff = nn.Embedding(8, 8), nn.Embedding(7, 8), nn.Embedding(9, 4)
        self.head = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x):
        return self.head(torch.cat([self.shop(x[:, 0]), self.day(x[:, 1]), self.staff(x[:, 2])], dim=1))


loader = DataLoader(tensors(train), batch_size=32, shuffle=True)
held = DataLoader(tensors(test), batch_size=64)  # expect: differently-numbered-sets
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(5):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        hits = sum((model(x).argmax(1) == y).sum().item() for x, y in held)
    print(epoch, hits / len(test))
