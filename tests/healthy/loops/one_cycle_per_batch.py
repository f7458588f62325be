"""OneCycleLR stepped after every batch, its length counted in batches."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X = torch.tensor(X / 16.0, dtype=torch.float32)
y = torch.tensor(y)
train_dl = DataLoader(TensorDataset(X[:1437], y[:1437]), batch_size=32, shuffle=True)
valid_dl = DataLoader(TensorDataset(X[1437:], y[1437:]), batch_size=128)

model = nn.Sequential(nn.Linear(64, 100), nn.BatchNorm1d(100), nn.ReLU(), nn.Dropout(0.3), nn.Linear(100, 10))
n_epochs, max_lr = 6, 0.01
optimizer = torch.optim.AdamW(model.parameters(), lr=max_lr, weight_decay=1e-2)
sched = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=max_lr, epochs=n_epochs, steps_per_epoch=len(train_dl))
loss_func = nn.functional.cross_entropy

for epoch in range(n_epochs):
    model.train()
    for xb, yb in train_dl:
        loss = loss_func(model(xb), yb)
        loss.backward()
        optimizer.step()
        sched.step()
        optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        accuracy = torch.cat([(model(xb).argmax(1) == yb).float() for xb, yb in valid_dl]).mean()
    print(f"{epoch} {loss.item():.4f} {accuracy:.4f} lr {sched.get_last_lr()[0]:.5f}")
