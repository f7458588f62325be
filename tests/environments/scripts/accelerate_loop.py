import sys
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(400, 12)
y = (x[:, :3].sum(1) > 0).long() + (x[:, 3] > 0.5).long() * (2 if "faulty" in sys.argv else 1)
accelerator = Accelerator(cpu=True)
train = DataLoader(TensorDataset(x[:300], y[:300]), batch_size=32, shuffle=True)
held = DataLoader(TensorDataset(x[300:], y[300:]), batch_size=32)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3))  # expect: label-out-of-range
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
model, optimizer, train, held = accelerator.prepare(model, optimizer, train, held)
for epoch in range(10):
    model.train()
    for a, b in train:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        accelerator.backward(loss)
        optimizer.step()
    model.eval()
    right = 0
    with torch.no_grad():
        for a, b in held:
            right += (model(a).argmax(1) == b).sum().item()
    print(epoch, right)
