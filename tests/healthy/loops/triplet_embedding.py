"""Metric learning: triplets of digits with TripletMarginLoss, nearest center in the evaluation."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

rng = np.random.default_rng(0)
torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)


class Triplets(Dataset):
    def __init__(self, stop):
        self.x, self.y = X[:stop], y[:stop]

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        same, other = np.flatnonzero(self.y == self.y[i]), np.flatnonzero(self.y != self.y[i])
        return self.x[i], self.x[rng.choice(same)], self.x[rng.choice(other)]


net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))
criterion = nn.TripletMarginLoss(margin=1.0)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
loader = DataLoader(Triplets(1400), batch_size=35, shuffle=True)
for epoch in range(6):
    total = 0
    for anchor, positive, negative in loader:
        loss = criterion(net(anchor), net(positive), net(negative))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        z = net(torch.from_numpy(X))
        centres = torch.stack([z[:1400][y[:1400] == c].mean(0) for c in range(10)])
        accuracy = (torch.cdist(z[1400:], centres).argmin(1).numpy() == y[1400:]).mean()
    print(f"epoch {epoch}: triplet loss {total / len(loader):.3f}, nearest centre {accuracy:.3f}")
