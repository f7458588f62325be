"""Accelerate; the head was exchanged after the optimizer was built."""

import torch
from accelerate import Accelerator
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator()
torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y))
loader = DataLoader(data, batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 5))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)  # expect: unregistered-parameters
model[2] = nn.Linear(128, 10)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for epoch in range(5):
    for images, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        accelerator.backward(loss)
        optimizer.step()
    accelerator.print(epoch, loss.item())
