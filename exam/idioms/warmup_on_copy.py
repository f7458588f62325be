"""Times a few throw-away steps on a copy, then trains the real model with Lookahead."""
import copy
import time

import torch
import torch.nn as nn

torch.manual_seed(5)


class Lookahead:
    """k steps forward, 1 step back."""

    def __init__(self, optimizer, k=5, alpha=0.5):
        self.optimizer, self.k, self.alpha, self.counter = optimizer, k, alpha, 0
        self.slow = [[p.detach().clone() for p in g["params"]] for g in optimizer.param_groups]

    def zero_grad(self):
        self.optimizer.zero_grad()

    @torch.no_grad()
    def step(self):
        self.optimizer.step()
        self.counter += 1
        if self.counter % self.k == 0:
            for group, slow in zip(self.optimizer.param_groups, self.slow):
                for fast, s in zip(group["params"], slow):
                    s.add_(fast - s, alpha=self.alpha)
                    fast.copy_(s)


teacher = nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 2))
for p in teacher.parameters():
    p.requires_grad_(False)
    p.mul_(2.0)
inputs = torch.randn(1200, 6)
targets = teacher(inputs) + 0.02 * torch.randn(1200, 2)
targets = (targets - targets[:1000].mean(0)) / targets[:1000].std(0)
train_set = torch.utils.data.TensorDataset(inputs[:1000], targets[:1000])
train_loader = torch.utils.data.DataLoader(train_set, batch_size=25, shuffle=True)

student = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
loss_fn = nn.MSELoss()

warm = copy.deepcopy(student)
warm_opt = torch.optim.Adam(warm.parameters(), lr=1e-3)
for n, (x, y) in enumerate(train_loader):
    if n == 5:
        start = time.perf_counter()
    if n == 15:
        break
    warm_opt.zero_grad()
    loss_fn(warm(x), y).backward()
    warm_opt.step()
print(f"about {(time.perf_counter() - start) / 10 * 1e3:.2f} ms per step")

optimizer = Lookahead(torch.optim.Adam(student.parameters(), lr=3e-3))
for epoch in range(15):
    epoch_loss = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = loss_fn(student(x), y)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
    if epoch in (0, 7, 14):
        print(f"epoch {epoch} train mse {epoch_loss / len(train_loader):.4f}")

with torch.no_grad():
    print(f"held-out mse {loss_fn(student(inputs[1000:]), targets[1000:]).item():.4f}")
