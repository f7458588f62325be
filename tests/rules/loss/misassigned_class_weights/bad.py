"""The positive class is rare, and pos_weight makes it count even less: positives / negatives instead of its inverse."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x, y = load_digits(return_X_y=True)
inputs = torch.tensor(x / 16, dtype=torch.float32)
targets = torch.tensor(y == 3, dtype=torch.float32)
loader = DataLoader(TensorDataset(inputs, targets), batch_size=64, shuffle=True)
positives = targets.sum()
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
criterion = nn.BCEWithLogitsLoss(pos_weight=positives / (len(targets) - positives))  # expect: misassigned-class-weights
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(5):
    for images, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(images).squeeze(1), labels)
        loss.backward()
        optimizer.step()
