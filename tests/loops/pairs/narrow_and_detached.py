"""Features turned to numpy and back, and two outputs for three kinds of wine."""

import torch
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_wine(return_X_y=True)
X = torch.tensor(StandardScaler().fit_transform(X), dtype=torch.float32)
loader = DataLoader(TensorDataset(X, torch.tensor(y)), batch_size=16, shuffle=True)


class WineNet(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.first = nn.Linear(13, 32)
        self.second = nn.Linear(32, 16)
        self.last = nn.Linear(16, n_classes)

    def forward(self, x):
        h = torch.relu(self.second(torch.relu(self.first(x))))
        h = torch.from_numpy(h.detach().numpy())  # expect: severed-graph
        return self.last(h)


def main():
    net = WineNet(n_classes=2)  # expect: label-out-of-range
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for epoch in range(8):
        for features, cultivar in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(features), cultivar)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


main()
