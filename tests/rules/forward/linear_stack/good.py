"""Two moons behind three layers, with activations between them."""

import torch
from sklearn.datasets import make_moons
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 64)
        self.drop = nn.Dropout(0.1)
        self.second = nn.Linear(64, 64)
        self.last = nn.Linear(64, 2)

    def forward(self, x):
        return self.last(self.drop(self.second(self.drop(self.first(x).relu())).relu()))


x, y = make_moons(1000, noise=0.1, random_state=0)
data = TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))
loader = DataLoader(data, batch_size=32, shuffle=True)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(5):
    for points, moons in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(points), moons).backward()
        optimizer.step()
