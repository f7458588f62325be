"""Accumulation over four batches, and zero_grad in every one of them."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
dataset = TensorDataset(torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y))
loader = DataLoader(dataset, batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
accumulate = 4

for epoch in range(4):
    total = 0.0
    for step, (inputs, labels) in enumerate(loader):
        optimizer.zero_grad()  # expect: wiped-accumulation
        loss = criterion(model(inputs), labels)
        (loss / accumulate).backward()
        if (step + 1) % accumulate == 0:
            optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}")
