"""Patients' progress sorted, the patients not, and the network's blocks in a plain list."""

import numpy as np
import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
patients, progress = load_diabetes(return_X_y=True)
patients = torch.Tensor(patients / patients.std(axis=0))
progress = torch.Tensor(np.sort((progress - progress.mean()) / progress.std()))


class Residual(nn.Module):
    def __init__(self, width=32, depth=3):
        super().__init__()
        self.embed = nn.Linear(10, width)
        self.blocks = [nn.Linear(width, width) for _ in range(depth)]  # expect: unregistered-parameters
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = x + torch.relu(block(x))
        return self.out(x).squeeze(-1)


data = TensorDataset(patients, progress)  # expect: misaligned-labels
model = Residual()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(3):
    for x, y in DataLoader(data, batch_size=50, shuffle=True):
        loss = nn.functional.huber_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
