"""Accelerate divides the loss of each row by the number of micro-batches, and does not average it."""

from accelerate import Accelerator
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x, y = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y))
accelerator = Accelerator(gradient_accumulation_steps=2)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, batch_size=64, shuffle=True))
for epoch in range(5):
    for images, labels in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(images), labels, reduction="none")  # expect: unreduced-loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
