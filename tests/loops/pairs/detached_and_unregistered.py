"""Heads in a plain list, and the trunk's features taken off the graph before them."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
digits = load_digits()
x = torch.tensor(digits.data / 16, dtype=torch.float32)
digit = torch.tensor(digits.target)


class TwoTasks(nn.Module):
    """Which digit, and whether it is even."""

    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU())
        self.scale = nn.Linear(24, 24)
        self.heads = [nn.Linear(24, 10), nn.Linear(24, 2)]  # expect: unregistered-parameters

    def forward(self, x):
        h = self.trunk(x).detach()  # expect: severed-graph
        h = torch.tanh(self.scale(h))
        return [head(h) for head in self.heads]


model = TwoTasks()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
ce = nn.CrossEntropyLoss()
for epoch in range(4):
    for inputs, label in DataLoader(TensorDataset(x, digit), batch_size=48, shuffle=True):
        which, even = model(inputs)
        loss = ce(which, label) + ce(even, label % 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
