import copy

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def fit(model, train, x, y, epochs=10):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best_accuracy, best_model = 0.0, None
    for epoch in range(epochs):
        for inputs, labels in train:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
        with torch.no_grad():
            accuracy = (model(x).argmax(1) == y).float().mean().item()
        is_best = accuracy > best_accuracy
        best_accuracy = max(accuracy, best_accuracy)
        if is_best:
            print(f"epoch {epoch}: {accuracy:.3f}")
            best_model = copy.deepcopy(model)
    return best_model


torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
train = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=32, shuffle=True)
model = fit(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)), train, x[1400:], y[1400:])
