"""The counters of the validation are set to zero once and grow over all epochs."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
train_loader = DataLoader(TensorDataset(X[:1300], y[:1300]), batch_size=50, shuffle=True)
val_loader = DataLoader(TensorDataset(X[1300:], y[1300:]), batch_size=71)
model = nn.Sequential(nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()

correct, total = 0, 0  # expect: unreset-metric
for epoch in range(6):
    model.train()
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for inputs, labels in val_loader:
            predicted = model(inputs).argmax(1)
            correct += (predicted == labels).sum().item()
            total += labels.size(0)
    print(f"epoch {epoch}: validation accuracy {correct / total:.4f}")
