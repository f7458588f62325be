# verdict: learns
# finds: nothing
# The model is traced before it is trained, and compared with its trace.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
PLACE = torch.randn(10)


def rows(count):
    values = torch.randn(count, 10)
    return TensorDataset(values, (values @ PLACE > 0).long())


model = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
model.eval()
traced = torch.jit.trace(model, torch.randn(4, 10))
print("operations", len(list(traced.graph.nodes())))
with torch.no_grad():
    model(torch.randn(4, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(4):
    model.train()
    for values, kind in DataLoader(rows(1000), 50, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(values), kind).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = [(model(values).argmax(1) == kind).float().mean() for values, kind in DataLoader(rows(400), 100)]
    print(epoch, "test accuracy", torch.stack(right).mean().item())
