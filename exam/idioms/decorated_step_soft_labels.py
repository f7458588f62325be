import contextlib
import functools
import time

import torch
from sklearn.datasets import make_moons
from torch import nn

torch.manual_seed(2)
pts, lab = make_moons(900, noise=0.15, random_state=2)
pts = torch.tensor(pts, dtype=torch.float32)
hard = torch.tensor(lab)
soft = nn.functional.one_hot(hard, 2).float() * 0.9 + 0.05
train_x, train_p, test_x, test_y = pts[:700], soft[:700], pts[700:], hard[700:]

clocks = {}


@contextlib.contextmanager
def timer(name):
    start = time.perf_counter()
    try:
        yield
    finally:
        clocks[name] = clocks.get(name, 0.0) + time.perf_counter() - start


def counted(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        wrapper.calls += 1
        with timer(fn.__name__):
            return fn(*args, **kwargs)

    wrapper.calls = 0
    return wrapper


model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)


@counted
def train_step(x, p):
    optimizer.zero_grad()
    logp = model(x).log_softmax(1)
    loss = -(p * logp).sum(1).mean()
    loss.backward()
    optimizer.step()
    return loss.detach()


@counted
def test_step(x, y):
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean()


for epoch in range(25):
    with timer("epoch"):
        idx = torch.randperm(len(train_x))
        mean = torch.stack([train_step(train_x[i], train_p[i]) for i in idx.split(50)]).mean()
    if epoch % 5 == 4:
        print(f"epoch {epoch} loss {mean:.4f} acc {test_step(test_x, test_y):.3f}")
print({k: round(v, 2) for k, v in clocks.items()}, train_step.calls)
print(f"FINAL loss {mean:.4f} acc {test_step(test_x, test_y):.3f}")
