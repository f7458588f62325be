"""The validation runs with dropout and batch statistics on: model.eval() is missing."""

import torch
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32).view(-1, 1, 8, 8), torch.tensor(y)
trainloader = DataLoader(TensorDataset(X[:1400], y[:1400]), batch_size=50, shuffle=True)
valloader = DataLoader(TensorDataset(X[1400:], y[1400:]), batch_size=40)
net = nn.Sequential(
    nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Dropout(0.5), nn.Linear(576, 10)
)
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(net.parameters(), lr=1e-3)

for epoch in range(5):
    net.train()
    for images, labels in trainloader:
        optimizer.zero_grad()
        loss = criterion(net(images), labels)
        loss.backward()
        optimizer.step()
    val_loss, val_correct = 0.0, 0
    with torch.no_grad():
        for images, labels in valloader:
            outputs = net(images)  # expect: wrong-mode
            val_loss += criterion(outputs, labels).item()
            val_correct += (outputs.argmax(1) == labels).sum().item()
    print(f"epoch {epoch}: val loss {val_loss / len(valloader):.3f} accuracy {val_correct / 397:.3f}")
