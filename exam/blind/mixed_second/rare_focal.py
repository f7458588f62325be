"""Rare events (3%) in two-dimensional sensor readings: focal loss, threshold set on a validation part, Accelerate."""
from dataclasses import dataclass
import numpy as np
import torch
from torch import nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.metrics import average_precision_score, f1_score, precision_recall_curve
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    n: int = 9000
    gamma: float = 2.0
    prior: float = .03
    epochs: int = 8
    batch: int = 128
    lr: float = 4e-3
    seed: int = 0


def readings(cfg, rng):
    y = (rng.random(cfg.n) < cfg.prior).astype(np.float32)
    ang, rad = rng.uniform(0, 2 * np.pi, cfg.n), rng.normal(2, .35, cfg.n)
    ring = np.stack([rad * np.cos(ang), rad * np.sin(ang)], 1)
    spot = rng.normal(0, .55, (cfg.n, 2))
    x = np.where(y[:, None] > 0, spot, ring)
    extra = rng.normal(size=(cfg.n, 4))
    return np.concatenate([x, extra], 1).astype(np.float32), y


def focal(z, y, gamma):
    ce = nn.functional.binary_cross_entropy_with_logits(z, y, reduction="none")
    p = torch.sigmoid(z)
    pt = torch.where(y > .5, p, 1 - p)
    return ((1 - pt) ** gamma * ce).sum() / len(y)


class Net(nn.Module):
    def __init__(self, d, prior):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
        # start from the prior so that the first steps are not spent on the bias
        nn.init.constant_(self.net[-1].bias, float(np.log(prior / (1 - prior))))

    def forward(self, x):
        return self.net(x)[:, 0]


def scores(model, x):
    model.eval()
    with torch.no_grad():
        s = torch.sigmoid(model(torch.from_numpy(x))).numpy()
    model.train()
    return s


def main(cfg):
    set_seed(cfg.seed)
    acc = Accelerator(cpu=True)
    x, y = readings(cfg, np.random.default_rng(cfg.seed))
    a, b = int(.6 * cfg.n), int(.8 * cfg.n)
    model = Net(x.shape[1], cfg.prior)
    opt = torch.optim.Adam(model.parameters(), cfg.lr)
    dl = DataLoader(TensorDataset(torch.from_numpy(x[:a]), torch.from_numpy(y[:a])), cfg.batch, shuffle=True)
    model, opt, dl = acc.prepare(model, opt, dl)
    print(f"{int(y[:a].sum())} events in {a} training rows; average precision by chance {y[b:].mean():.3f}")
    for ep in range(cfg.epochs):
        tot = 0
        for xb, yb in dl:
            loss = focal(model(xb), yb, cfg.gamma)
            acc.backward(loss)
            opt.step()
            opt.zero_grad()
            tot += loss.item()
        print(f"epoch {ep} focal loss {tot / len(dl):.5f} validation AP {average_precision_score(y[a:b], scores(model, x[a:b])):.3f}")
    pr, rc, th = precision_recall_curve(y[a:b], scores(model, x[a:b]))
    best = th[np.argmax(2 * pr[:-1] * rc[:-1] / np.maximum(pr[:-1] + rc[:-1], 1e-9))]
    s = scores(model, x[b:])
    print(f"threshold {best:.3f} (from validation); test AP {average_precision_score(y[b:], s):.3f} F1 {f1_score(y[b:], s >= best):.3f}")


main(Config())
