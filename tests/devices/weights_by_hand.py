"""Weights made on the device by torch.randn(device=), before anything else is asked of it."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

images, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits))

loader = DataLoader(data, batch_size=32, shuffle=True)
w1 = (torch.randn(64, 64, device="cuda") / 8).requires_grad_()
b1 = torch.zeros(64, device="cuda", requires_grad=True)
w2 = (torch.randn(64, 10, device="cuda") / 8).requires_grad_()
optimizer = torch.optim.Adam([w1, b1, w2], lr=1e-3)

for epoch in range(3):
    for x, y in loader:
        scores = torch.relu(x.cuda() @ w1 + b1) @ w2
        loss = nn.functional.cross_entropy(scores, y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
