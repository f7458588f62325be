"""Accelerate for the model, .to('cuda') for the batch."""

import torch
from accelerate import Accelerator
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

images, digits = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(digits))

accelerator = Accelerator(mixed_precision="bf16")
loader = DataLoader(data, batch_size=32, shuffle=True)
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to("cuda")
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
weights = torch.ones(10).to(accelerator.device)

for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y, weight=weights)
        accelerator.backward(loss)
        optimizer.step()
