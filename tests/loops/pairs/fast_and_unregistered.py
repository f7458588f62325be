"""Towers in a dictionary, unseen by an optimizer at a rate of 2."""

import torch
from sklearn.datasets import make_friedman1
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = make_friedman1(n_samples=640, n_features=10, random_state=0)
X, y = torch.tensor(X, dtype=torch.float32), torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32)
PARTS = {"left": slice(0, 5), "right": slice(5, 10)}


class TwoTowers(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.towers = {  # expect: unregistered-parameters
            name: nn.Sequential(nn.Linear(5, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
            for name in PARTS
        }
        self.join = nn.Linear(2 * width, 1)

    def forward(self, x):
        return self.join(torch.cat([self.towers[n](x[:, part]) for n, part in PARTS.items()], dim=1))


model = TwoTowers()
optimizer = torch.optim.AdamW(model.parameters(), lr=2.0)  # expect: excessive-learning-rate
for epoch in range(5):
    for x, target in DataLoader(TensorDataset(X, y.unsqueeze(1)), batch_size=40, shuffle=True):
        loss = (model(x) - target).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
