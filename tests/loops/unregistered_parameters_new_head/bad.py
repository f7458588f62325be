"""The head is replaced after the optimizer was built."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build_model(num_classes):
    model = nn.Sequential()
    model.add_module("features", nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU()))
    model.add_module("classifier", nn.Linear(48, num_classes))
    return model


torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
loader = DataLoader(TensorDataset(X[:1400], y[:1400]), batch_size=64, shuffle=True)
model = build_model(num_classes=1000)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)  # expect: unregistered-parameters
model.classifier = nn.Linear(48, 10)
criterion = nn.CrossEntropyLoss()

for epoch in range(5):
    for images, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        accuracy = (model(X[1400:]).argmax(1) == y[1400:]).float().mean()
    print(f"epoch {epoch}: loss {loss.item():.3f} accuracy {accuracy:.3f}")
