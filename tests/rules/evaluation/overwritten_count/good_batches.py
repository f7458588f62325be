"""Counts of a batch that are added up or printed at once, and divisors times the batch size."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
train = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=32, shuffle=True)
valid = DataLoader(TensorDataset(x[1400:], y[1400:]), batch_size=64)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


for epoch in range(10):
    for inputs, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    total, shares, last, losses = 0, [], 0.0, 0.0
    batches, summed, means = 0, 0, 0.0
    with torch.no_grad():
        for inputs, labels in valid:
            equal = model(inputs).argmax(1) == labels
            correct = equal.sum().item()
            total = total + correct
            shares.append(correct / len(labels))
            last = (model(inputs).argmax(1) == labels).float().mean().item()
            losses += nn.functional.cross_entropy(model(inputs), labels).item() * len(labels)
            summed += (model(inputs).argmax(1) == labels).sum().item()
            means += (model(inputs).argmax(1) == labels).float().mean().item() * len(labels)
            batches += 1
    print(f"epoch {epoch}: {total / len(valid.dataset):.3f} {sum(shares) / len(shares):.3f}, last {last:.3f}")
    print(losses / len(valid.dataset), summed / len(valid) / valid.batch_size, means / len(valid.dataset))
    mean_correct = summed / batches
    print(mean_correct / valid.batch_size)
