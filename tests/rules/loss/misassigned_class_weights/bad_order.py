"""The weights are in the order in which value_counts lists the classes, the most frequent first."""

import pandas as pd
import torch
from sklearn.datasets import load_wine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x, y = load_wine(return_X_y=True)
kept = [i for i, label in enumerate(y) if label != 0 or i % 3 == 0]
x, y = (x - x.mean(0)) / x.std(0), y
inputs, labels = torch.tensor(x[kept], dtype=torch.float32), torch.tensor(y[kept])
loader = DataLoader(TensorDataset(inputs, labels), batch_size=16, shuffle=True)
counts = pd.Series(y[kept]).value_counts()
weights = torch.tensor(len(kept) / (3 * counts.to_numpy()), dtype=torch.float32)
model = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))
criterion = nn.CrossEntropyLoss(weight=weights)  # expect: misassigned-class-weights
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(5):
    for rows, classes in loader:
        optimizer.zero_grad()
        loss = criterion(model(rows), classes)
        loss.backward()
        optimizer.step()
