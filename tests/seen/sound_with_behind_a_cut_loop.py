# verdict: learns
# finds: nothing
# seconds: 4
# The loops are left when their time is over: what follows is a `with`, which Python could be made to enter at its end.
import time

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(600, 6)
y = (x[:, 0] > 0).long()
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(100_000):
    for i in range(0, 400, 40):
        loss = nn.functional.cross_entropy(model(x[i : i + 40]), y[i : i + 40])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.002)
with torch.no_grad():
    print((model(x[400:]).argmax(1) == y[400:]).float().mean().item())
