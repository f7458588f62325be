# verdict: learns
# finds: nothing
# Weights in bfloat16, with steps that they can take.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
PLAN = torch.randn(12, 1)


def plants(count):
    values = torch.randn(count, 12)
    return values, torch.tanh(values @ PLAN / 3)


x, y = plants(2000)
test_x, test_y = plants(500)
model = nn.Sequential(nn.Linear(12, 96), nn.GELU(), nn.Linear(96, 1)).to(torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(6):
    model.train()
    for values, target in DataLoader(TensorDataset(x, y), 50, shuffle=True):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(values.bfloat16()).float(), target).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, "test loss", nn.functional.mse_loss(model(test_x.bfloat16()).float(), test_y).item())
