"""Accelerate with bf16; two outputs for three classes."""

import torch
from accelerate import Accelerator
from sklearn.datasets import load_wine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(mixed_precision="bf16", cpu=True)
torch.manual_seed(0)
x, y = load_wine(return_X_y=True)
x = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)
loader = DataLoader(TensorDataset(x, torch.tensor(y)), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 2))  # expect: label-out-of-range
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
criterion = nn.CrossEntropyLoss()
for epoch in range(10):
    for features, target in loader:
        optimizer.zero_grad()
        loss = criterion(model(features), target)
        accelerator.backward(loss)
        optimizer.step()
    accelerator.print(epoch, loss.item())
