"""Rows sorted by class and a loader that shuffles."""

import pandas as pd
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
table = pd.DataFrame(X / 16)
table["digit"] = y
train, test = table[:1400].sort_values("digit"), table[1400:]


def tensors(part):
    pixels = part.drop(columns="digit").to_numpy()
    return torch.tensor(pixels, dtype=torch.float32), torch.tensor(part["digit"].to_numpy())


train_loader = DataLoader(TensorDataset(*tensors(train)), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(5):
    for x, y in train_loader:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        x, y = tensors(test)
        print(f"epoch {epoch}: accuracy {(model(x).argmax(1) == y).float().mean():.3f}")
