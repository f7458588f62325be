"""A metric of the library `evaluate`, filled batch by batch before the training, within it and after it."""

import evaluate
import torch
from material import METRIC
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1200, 10)
y = (x[:, :3].sum(1) > 0).long()
train = DataLoader(TensorDataset(x[:1000], y[:1000]), batch_size=32, shuffle=True)
held_out = DataLoader(TensorDataset(x[1000:], y[1000:]), batch_size=50)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
metric = evaluate.combine([METRIC, evaluate.load(METRIC)])


def measured():
    model.eval()
    for a, b in held_out:
        with torch.no_grad():
            metric.add_batch(predictions=model(a).argmax(-1), references=b)
    return metric.compute()


print("before", measured())
for epoch in range(5):
    model.train()
    for a, b in train:
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(epoch, measured())
