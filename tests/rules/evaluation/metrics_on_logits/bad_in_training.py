"""The accuracy of the training batches compares scores with labels, inside the training loop."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16).float(), torch.tensor(y)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    right = 0
    for rows in torch.randperm(1400).split(50):
        scores = model(X[rows])
        loss = nn.functional.cross_entropy(scores, y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += (scores == y[rows]).sum().item()  # expect: metrics-on-logits
    print(epoch, right / 1400)
