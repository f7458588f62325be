"""Two outputs for three kinds of iris, and a training function without zero_grad."""

import torch
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def build(inputs, hidden, outputs):
    return nn.Sequential(
        nn.Linear(inputs, hidden),
        nn.ReLU(),
        nn.Linear(hidden, outputs),
    )


def train_one_epoch(model, loader, optimizer, criterion):
    model.train()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()  # expect: uncleared-gradients
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    iris = load_iris()
    x = torch.tensor(StandardScaler().fit_transform(iris.data), dtype=torch.float32)
    loader = DataLoader(TensorDataset(x, torch.tensor(iris.target)), batch_size=10, shuffle=True)
    model = build(4, 16, 2)  # expect: label-out-of-range
    optimizer = optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(10):
        print(epoch, train_one_epoch(model, loader, optimizer, nn.CrossEntropyLoss()))
