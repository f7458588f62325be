# verdict: learns in part
# finds: weights-stand-still
# tells: training 2 of 2
# The optimizer is made before the body is frozen and a new head put on: the second training holds no weight that can move.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
MAP = torch.randn(10, 4)


def rows(count, shift):
    values = torch.randn(count, 10)
    return TensorDataset(values, ((values @ MAP).argmax(1) + shift) % 4)


def fit(model, optimizer, loader, epochs):
    for _ in range(epochs):
        total = 0.0
        for values, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(values), labels)
            loss.backward()
            optimizer.step()  # finds: weights-stand-still
            total += loss.item()
        print("loss", round(total / len(loader), 4))


def accuracy(model, loader):
    with torch.no_grad():
        return sum((model(values).argmax(1) == labels).sum().item() for values, labels in loader) / len(loader.dataset)


body, head = nn.Sequential(nn.Linear(10, 64), nn.ReLU()), nn.Linear(64, 4)
model = nn.Sequential(body, head)
fit(model, torch.optim.Adam(model.parameters(), lr=3e-3), DataLoader(rows(1200, 0), 40, shuffle=True), 6)
print("first task", accuracy(model, DataLoader(rows(400, 0), 100)))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for parameter in body.parameters():
    parameter.requires_grad_(False)
model[1] = nn.Linear(64, 4)
fit(model, optimizer, DataLoader(rows(1200, 1), 40, shuffle=True), 6)
print("second task", accuracy(model, DataLoader(rows(400, 1), 100)))
