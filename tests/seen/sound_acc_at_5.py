# verdict: learns
# finds: nothing
# tells: acc@1 went from
import logging

import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(message)s")
torch.manual_seed(0)
x = torch.randn(600, 6)
y = x[:, :3].argmax(1)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(6):
    model.train()
    for i in range(0, 400, 40):
        loss = nn.functional.cross_entropy(model(x[i : i + 40]), y[i : i + 40])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(x[400:])
        top1 = (out.argmax(1) == y[400:]).float().mean().item() * 100
        test_loss = nn.functional.cross_entropy(out, y[400:]).item()
    logging.info(f"Test: [   1/1]  Time: 0.115 (0.153)  Loss: {test_loss:>7.3f} ({test_loss:>6.3f})  "
                 f"Acc@1: {top1:>7.3f} ({top1:>7.3f})  Acc@5: {100.0:>7.3f} ({100.0:>7.3f})")
