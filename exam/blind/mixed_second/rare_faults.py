"""Three-way machine state classifier with rare states; balanced sampling (Accelerate)."""
from collections import Counter
from dataclasses import dataclass
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler
from accelerate import Accelerator
from accelerate.utils import set_seed


@dataclass
class Config:
    n: int = 4000
    length: int = 64
    batch: int = 64
    epochs: int = 6
    lr: float = 2e-3
    seed: int = 0


def vibration(n, length, rng):
    """0 healthy, 1 worn bearing (periodic clicks), 2 imbalance (strong low tone)."""
    y = rng.choice(3, n, p=[.86, .08, .06])
    t = np.arange(length)
    x = rng.normal(0, .6, (n, length)) + np.sin(2 * np.pi * t / 8 + rng.uniform(0, 6.3, (n, 1)))
    for i in np.where(y == 1)[0]:
        x[i, rng.integers(0, 12)::12] += rng.uniform(1.2, 2.0)
    low = np.sin(2 * np.pi * t / 32 + rng.uniform(0, 6.3, (n, 1)))
    x[y == 2] += .9 * low[y == 2]
    return torch.tensor(x[:, None], dtype=torch.float32), torch.tensor(y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Conv1d(1, 16, 9, padding=4), nn.ReLU(), nn.MaxPool1d(2),
                               nn.Conv1d(16, 24, 7, padding=3), nn.ReLU())
        self.out = nn.Linear(48, 3)

    def forward(self, x):
        h = self.f(x)
        return self.out(torch.cat([h.mean(-1), h.amax(-1)], 1))


def recalls(acc, model, loader):
    model.eval()
    P, Y = [], []
    with torch.no_grad():
        for x, y in loader:
            p, y = acc.gather_for_metrics((model(x).argmax(-1), y))
            P.append(p)
            Y.append(y)
    p, y = torch.cat(P), torch.cat(Y)
    model.train()
    return [(p[y == k] == k).float().mean().item() for k in range(3)]


def train(cfg: Config):
    set_seed(cfg.seed)
    rng = np.random.default_rng(cfg.seed)
    acc = Accelerator(cpu=True)
    xtr, ytr = vibration(cfg.n, cfg.length, rng)
    xte, yte = vibration(2000, cfg.length, rng)
    counts = Counter(ytr.tolist())
    acc.print("class counts", dict(sorted(counts.items())))
    weights = [1.0 / counts[k] for k in sorted(counts)]
    sampler = WeightedRandomSampler(weights, num_samples=len(ytr), replacement=True)
    dl = DataLoader(TensorDataset(xtr, ytr), batch_size=cfg.batch, sampler=sampler)
    test = DataLoader(TensorDataset(xte, yte), batch_size=500)
    model = Net()
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    model, opt, dl, test = acc.prepare(model, opt, dl, test)
    for ep in range(cfg.epochs):
        losses = []
        for x, y in dl:
            loss = nn.functional.cross_entropy(model(x), y)
            acc.backward(loss)
            opt.step()
            opt.zero_grad()
            losses.append(loss.item())
        r = recalls(acc, model, test)
        acc.print(f"epoch {ep} loss {np.mean(losses):.4f} recall per class {[round(v, 2) for v in r]}")
    acc.print(f"balanced accuracy {np.mean(recalls(acc, model, test)):.3f}")


train(Config())
