"""Inputs drawn in random order beside labels in theirs, and an encoder detached from its head."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
X, y = load_digits(n_class=6, return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32), nn.Tanh())
head = nn.Linear(32, 6)
optimizer = torch.optim.Adam(list(encoder.parameters()) + list(head.parameters()), lr=2e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(4):
    permutation = torch.randperm(X.size(0))
    epoch_loss = 0.0
    for i in range(0, X.size(0), 64):
        indices = permutation[i : i + 64]
        batch_x, batch_y = X[indices], y[i : i + 64]  # expect: misaligned-labels
        optimizer.zero_grad()
        codes = encoder(batch_x).detach()  # expect: severed-graph
        loss = criterion(head(codes), batch_y)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
    print(epoch, epoch_loss)
