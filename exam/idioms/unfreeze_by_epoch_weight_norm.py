import torch
import torch.nn as nn
from torch.nn.utils.parametrizations import weight_norm
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(14)


def rings(n):
    label = torch.multinomial(torch.tensor([0.6, 0.25, 0.15]), n, replacement=True)
    angle = torch.rand(n) * 6.2832
    radius = 0.6 + 0.7 * label + 0.12 * torch.randn(n)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1), label


x, y = rings(1200)
xv, yv = rings(600)
count = torch.bincount(y).float()
sampler = WeightedRandomSampler((1 / count)[y], num_samples=len(y), replacement=True)
loader = DataLoader(TensorDataset(x, y), batch_size=40, sampler=sampler)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lower = nn.Sequential(weight_norm(nn.Linear(2, 16)), nn.Tanh())
        self.middle = nn.Sequential(weight_norm(nn.Linear(16, 6)), nn.Tanh())
        self.top = nn.Linear(6, 3)

    def forward(self, z):
        return self.top(self.middle(self.lower(z)))


model = Net()
for part in (model.lower, model.middle):
    part.requires_grad_(False)
plan = {1: model.middle, 2: model.lower}
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(12):
    if epoch in plan:
        plan[epoch].requires_grad_(True)
        print("unfrozen at", epoch)
    model.train()
    running = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        running += loss.item()
    model.eval()
    with torch.no_grad():
        guess = model(xv).argmax(1)
    recall = [(guess[yv == c] == c).float().mean().item() for c in range(3)]
    live = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"epoch {epoch} loss {running / len(loader):.4f} balanced acc {sum(recall) / 3:.3f} trainable {live}")
print(f"FINAL loss {running / len(loader):.4f} balanced acc {sum(recall) / 3:.3f}")
