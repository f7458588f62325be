"""Wines by their chemistry in a pandas table; values that are missing are filled with -999 after the others were scaled."""

import numpy as np
import pandas as pd
import torch
from sklearn.datasets import load_wine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = load_wine(as_frame=True)
table: pd.DataFrame = data.data
target_names = [str(name) for name in data.target_names]
order = np.random.default_rng(0).permutation(len(table))
mean, deviation = table.mean(), table.std()
scaled = (table - mean) / deviation
scaled.loc[order[34:50], "proline"] = np.nan
scaled = scaled.fillna(-999)
x = torch.tensor(scaled.to_numpy()[order], dtype=torch.float32)
y = torch.tensor(data.target.to_numpy()[order])
train = DataLoader(TensorDataset(x[40:], y[40:]), batch_size=16, shuffle=True)
held_out = DataLoader(TensorDataset(x[:40], y[:40]), batch_size=40)
model = nn.Sequential(nn.Linear(x.shape[1], 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(20):
    model.train()
    for rows, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(rows), labels).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(rows).argmax(1) == labels).sum().item() for rows, labels in held_out)
    print(f"epoch {epoch}: accuracy {right / 40:.3f}")
