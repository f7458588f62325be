"""An endless stream: learn the sum of a sequence with a GRU, a fixed number of steps."""

import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class AddingProblem(IterableDataset):
    """Two marked numbers in a sequence of twelve; the target is their sum."""

    def __init__(self, seed):
        self.seed = seed

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed)
        while True:
            values = torch.rand(12, generator=g)
            marks = torch.zeros(12)
            marks[torch.randperm(12, generator=g)[:2]] = 1.0
            yield torch.stack([values, marks], dim=1), (values * marks).sum(0, keepdim=True)


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(2, 32, batch_first=True)
        self.linear = nn.Linear(32, 1)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.linear(states[:, -1])


torch.manual_seed(0)
loader = DataLoader(AddingProblem(seed=0), batch_size=64)
model, loss_fn = Adder(), nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
running = None
for step, (x, y) in enumerate(loader):
    loss = loss_fn(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    running = loss.item() if running is None else 0.95 * running + 0.05 * loss.item()
    if step % 100 == 0:
        print(f"step {step}: mse {running:.4f}")
    if step >= 500:
        break
with torch.no_grad():
    x, y = map(torch.stack, zip(*itertools.islice(AddingProblem(seed=1), 200)))
    print(f"held out {loss_fn(model(x), y).item():.4f}, variance {y.var().item():.4f}")
