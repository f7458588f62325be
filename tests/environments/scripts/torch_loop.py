import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(400, 12)
y = (x[:, :3].sum(1) > 0).long() + (x[:, 3] > 0.5).long() * (2 if "faulty" in sys.argv else 1)
train = DataLoader(TensorDataset(x[:300], y[:300]), batch_size=32, shuffle=True)
held = DataLoader(TensorDataset(x[300:], y[300:]), batch_size=32)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3))  # expect: label-out-of-range
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loss_of = nn.CrossEntropyLoss()
if "api" in sys.argv:
    import trainwright
    from trainwright.report import json

    report = trainwright.check(
        model=model, loader=train, evaluation_loader=held, loss=loss_of, optimizer=optimizer
    )
    print(json.render(report))
    sys.exit()
for epoch in range(10):
    model.train()
    for inputs, labels in train:
        optimizer.zero_grad()
        loss = loss_of(model(inputs), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(a).argmax(1) == b).sum().item() for a, b in held)
    print(epoch, right / 100)
