"""Nine outputs for ten digits, and SGD at a rate of 20."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
model = nn.Sequential(
    nn.Linear(64, 48),
    nn.ReLU(),
    nn.Linear(48, 9),  # expect: label-out-of-range
)
optimizer = torch.optim.SGD(model.parameters(), lr=20.0)  # expect: excessive-learning-rate
loss_function = nn.CrossEntropyLoss()
for epoch in range(5):
    shuffled = torch.randperm(len(X))
    for i in range(0, len(X), 64):
        idx = shuffled[i : i + 64]
        optimizer.zero_grad()
        loss = loss_function(model(X[idx]), y[idx])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.3f}")
