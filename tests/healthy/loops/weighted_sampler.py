"""Rare classes drawn more often by a WeightedRandomSampler; the sampler gets milder from epoch to epoch."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
test_X, test_y = X[1400:], y[1400:]
keep = (y[:1400] < 5) | (torch.rand(1400) < 0.25)
X, y = X[:1400][keep], y[:1400][keep]
train_set = TensorDataset(X, y)
counts = torch.bincount(y).float()
print("counts", counts.int().tolist())

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(8):
    strength = 1.0 - epoch / 16
    weights = (1.0 / counts[y]) ** strength
    sampler = WeightedRandomSampler(weights, num_samples=len(train_set), replacement=True)
    loader = DataLoader(train_set, batch_size=32, sampler=sampler)
    model.train()
    for features, target in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(features), target)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = model(test_X).argmax(1) == test_y
    print(f"epoch {epoch}: all {right.float().mean():.3f}, rare {right[test_y >= 5].float().mean():.3f}")
