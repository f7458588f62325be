"""Predictions (N, 1) compared with labels (N,): the accuracy counts N x N pairs."""

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_breast_cancer(return_X_y=True)
X_train, X_val, y_train, y_val = train_test_split(X, y, random_state=0, stratify=y)
scaler = StandardScaler().fit(X_train)


def loader(X, y, shuffle):
    features = torch.tensor(scaler.transform(X), dtype=torch.float32)
    return DataLoader(
        TensorDataset(features, torch.tensor(y, dtype=torch.float32)), batch_size=32, shuffle=shuffle
    )


train_loader, val_loader = loader(X_train, y_train, True), loader(X_val, y_val, False)
model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(6):
    model.train()
    for features, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(features), labels.unsqueeze(1))
        loss.backward()
        optimizer.step()
    model.eval()
    correct = 0
    with torch.no_grad():
        for features, labels in val_loader:
            predicted = (torch.sigmoid(model(features)) > 0.5).float()
            correct += (predicted == labels).sum().item()  # expect: broadcast-metric
    print(f"epoch {epoch}: loss {loss.item():.3f} accuracy {correct / len(y_val):.3f}")
