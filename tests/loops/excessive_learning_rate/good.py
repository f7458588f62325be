"""A CNN on digits with Adam at a rate of 0.002."""

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
labels = torch.tensor(digits.target)
train_loader = DataLoader(TensorDataset(images[:1500], labels[:1500]), batch_size=50, shuffle=True)
test_loader = DataLoader(TensorDataset(images[1500:], labels[1500:]), batch_size=99)

net = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(96, 10),
)  # fmt: skip
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=0.002)

for epoch in range(5):
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(net(inputs), targets)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        correct = sum((net(x).argmax(dim=1) == y).sum().item() for x, y in test_loader)
    print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {correct / 297:.3f}")
