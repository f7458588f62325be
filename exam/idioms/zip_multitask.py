import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1234)

# two tables over the same 12 inputs: one with a class, one with a measured value
w_class, w_value = torch.randn(12, 4), torch.randn(12)


def table_a(n):
    x = torch.randn(n, 12)
    return x, (x @ w_class + 0.2 * torch.randn(n, 4)).argmax(1)


def table_b(n):
    x = torch.randn(n, 12)
    v = torch.tanh(x @ w_value / 3) + 0.05 * torch.randn(n)
    return x, v


loader_a = DataLoader(TensorDataset(*table_a(1024)), batch_size=32, shuffle=True)
loader_b = DataLoader(TensorDataset(*table_b(1024)), batch_size=32, shuffle=True)
val_a, val_b = table_a(400), table_b(400)


class SharedTrunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU())
        self.cls_head = nn.Linear(48, 4)
        self.reg_head = nn.Linear(48, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.cls_head(h), self.reg_head(h).squeeze(-1)


def validate(model):
    model.eval()
    with torch.no_grad():
        acc = (model(val_a[0])[0].argmax(1) == val_a[1]).float().mean().item()
        mse = F.mse_loss(model(val_b[0])[1], val_b[1]).item()
    model.train()
    return acc, mse


model = SharedTrunk()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
print("before: acc %.3f mse %.3f" % validate(model))
for epoch in range(12):
    sum_a = sum_b = 0.0
    for (xa, ya), (xb, yb) in zip(loader_a, loader_b):
        loss_a = F.cross_entropy(model(xa)[0], ya)
        loss_b = F.mse_loss(model(xb)[1], yb)
        loss = loss_a + loss_b
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sum_a += loss_a.item()
        sum_b += loss_b.item()
    print(f"epoch {epoch}: class loss {sum_a / len(loader_a):.4f} value loss {sum_b / len(loader_b):.4f}")
print("after: acc %.3f mse %.3f" % validate(model))
