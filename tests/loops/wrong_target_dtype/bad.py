"""Class labels stored as floats and given to CrossEntropyLoss."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class LitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x):
        return self.layers(x)


def run(epochs=4):
    X, y = load_digits(return_X_y=True)
    train_data = TensorDataset(torch.Tensor(X / 16), torch.Tensor(y))  # expect: wrong-target-dtype
    train_loader = DataLoader(train_data, batch_size=64, shuffle=True)
    net = LitNet()
    loss_function = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(epochs):
        for inputs, targets in train_loader:
            optimizer.zero_grad()
            loss = loss_function(net(inputs), targets)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


torch.manual_seed(0)
run()
