"""Two outputs for three kinds of wine, and hidden layers in a plain list."""

import torch
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from torch import nn

torch.manual_seed(0)


class Mlp(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = []  # expect: unregistered-parameters
        for before, after in zip(sizes[:-2], sizes[1:-1]):
            self.layers += [nn.Linear(before, after), nn.ReLU()]
        self.last = nn.Linear(sizes[-2], sizes[-1])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.last(x)


wine = load_wine()
x, y = torch.tensor(scale(wine.data)).float(), torch.tensor(wine.target)
mlp = Mlp([13, 40, 20, 2])  # expect: label-out-of-range
optimizer = torch.optim.RMSprop(mlp.parameters(), lr=2e-3)
for epoch in range(10):
    for rows in torch.randperm(len(x)).chunk(8):
        optimizer.zero_grad()
        nn.functional.cross_entropy(mlp(x[rows]), y[rows]).backward()
        optimizer.step()
    print(epoch, nn.functional.cross_entropy(mlp(x), y).item())
