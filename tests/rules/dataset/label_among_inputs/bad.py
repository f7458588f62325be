"""The table is passed with its label column, scaled like the others."""

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x, y = load_breast_cancer(return_X_y=True)
x = scale(np.column_stack([x, y]))
data = TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))  # expect: label-among-inputs
model = nn.Sequential(nn.Linear(x.shape[1], 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    for rows, labels in DataLoader(data, batch_size=32, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(rows), labels).backward()
        optimizer.step()
