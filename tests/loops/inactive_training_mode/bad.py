"""After the first validation the model stays in evaluation mode."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
train_loader = DataLoader(TensorDataset(X[:1400], y[:1400]), batch_size=64, shuffle=True)
valid_loader = DataLoader(TensorDataset(X[1400:], y[1400:]), batch_size=200)


def evaluate(model):
    model.eval()  # expect: inactive-training-mode
    with torch.no_grad():
        accuracy = sum((model(x).argmax(1) == t).sum().item() for x, t in valid_loader) / len(X[1400:])
    return accuracy


model = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
print(f"before training: accuracy {evaluate(model):.3f}")
for epoch in range(5):
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f} accuracy {evaluate(model):.3f}")
