"""Multi-step forecast of hourly load for a few sites, one shared MLP."""
from dataclasses import dataclass
import numpy as np
import torch
import torch.nn as nn


@dataclass
class Cfg:
    ctx: int = 48
    horizon: int = 12
    hidden: int = 96
    batch: int = 128
    steps: int = 900
    lr: float = 1e-3
    seed: int = 0


cfg = Cfg()
torch.manual_seed(cfg.seed)
rng = np.random.default_rng(cfg.seed)


def site(n, rng):
    t = np.arange(n)
    level = 200 + np.cumsum(rng.normal(0, 1.5, n))
    day = 12 * np.sin(2 * np.pi * t / 24 + rng.uniform(0, 6)) + 5 * np.sin(4 * np.pi * t / 24)
    return (level + day + rng.normal(0, 1.0, n)).astype(np.float32)


series = [site(2500, rng) for _ in range(6)]
cut = 2000
L = cfg.ctx + cfg.horizon


def windows(s, stride=3):
    return np.stack([s[i:i + L] for i in range(0, len(s) - L + 1, stride)])


train_w = torch.tensor(np.concatenate([windows(s[:cut]) for s in series]))
test_w = torch.tensor(np.concatenate([windows(s[cut:]) for s in series]))


def normalise(w):
    """Per-window scaling so that sites of different size can share a model."""
    mu = w.mean(1, keepdim=True)
    sd = w.std(1, keepdim=True) + 1e-3
    return (w - mu) / sd, mu, sd


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(cfg.ctx, cfg.hidden), nn.ReLU(),
            nn.Linear(cfg.hidden, cfg.hidden), nn.ReLU(),
            nn.Linear(cfg.hidden, cfg.horizon))

    def forward(self, x):
        return x[:, -1:] + self.net(x)


model = Forecaster()
opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, cfg.steps)


def mae(w):
    model.eval()
    z, mu, sd = normalise(w)
    with torch.no_grad():
        pred = model(z[:, :cfg.ctx]) * sd + mu
    model.train()
    return (pred - w[:, cfg.ctx:]).abs()


print(f"{len(train_w)} training windows, {len(test_w)} test windows")
for step in range(1, cfg.steps + 1):
    w = train_w[torch.randint(len(train_w), (cfg.batch,))]
    z, _, _ = normalise(w)
    loss = nn.functional.smooth_l1_loss(model(z[:, :cfg.ctx]), z[:, cfg.ctx:])
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if step % 300 == 0:
        print(f"step {step:5d} loss {loss.item():.4f} test MAE {mae(test_w).mean():.3f}")

seasonal = (test_w[:, cfg.ctx - 24:cfg.ctx - 12] - test_w[:, cfg.ctx:]).abs()
print(f"same hour yesterday: MAE {seasonal.mean():.3f}")
err = mae(test_w).mean(0)
print("MAE by step ahead: " + " ".join(f"{e:.2f}" for e in err))
print(f"model: MAE {err.mean():.3f}")
