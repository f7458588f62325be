"""Metric learning on digits: batch-hard triplets; scored by retrieval among images never trained on."""
from dataclasses import dataclass
import torch
from torch import nn
from sklearn.datasets import load_digits


@dataclass
class Config:
    dim: int = 16
    per_class: int = 8
    margin: float = .3
    steps: int = 400
    lr: float = 2e-3
    seed: int = 0


class Embedder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
                                 nn.Flatten(), nn.Linear(512, dim))

    def forward(self, x):
        return nn.functional.normalize(self.net(x), dim=-1)


def batch_hard(z, y, margin):
    d = torch.cdist(z, z)
    same = y[:, None] == y[None]
    eye = torch.eye(len(y), dtype=torch.bool)
    far_pos = d.masked_fill(~same | eye, -1).amax(1)
    near_neg = d.masked_fill(same, 9).amin(1)
    # soft margin keeps a gradient once the hinge would be zero
    return nn.functional.softplus((far_pos - near_neg + margin) * 4).mean() / 4


def pk_batch(by_class, k):
    idx, lab = [], []
    for c, rows in by_class.items():
        idx.append(rows[torch.randint(len(rows), (k,))])
        lab += [c] * k
    return torch.cat(idx), torch.tensor(lab)


@torch.no_grad()
def recall_at_1(model, x, y):
    z = model(x) if model else x.flatten(1)
    d = torch.cdist(z, z).fill_diagonal_(9e9)
    return (y[d.argmin(1)] == y).float().mean().item()


@torch.no_grad()
def mean_ap(model, x, y):
    z = model(x) if model else x.flatten(1)
    order = torch.cdist(z, z).fill_diagonal_(9e9).argsort(1)[:, :-1]
    rel = (y[order] == y[:, None]).float()
    prec = rel.cumsum(1) / torch.arange(1, rel.shape[1] + 1)
    return ((prec * rel).sum(1) / rel.sum(1)).mean().item()


def main(c=Config()):
    torch.manual_seed(c.seed)
    d = load_digits()
    x = torch.tensor(d.images, dtype=torch.float32)[:, None] / 16
    y = torch.tensor(d.target)
    p = torch.randperm(len(x))
    x, y = x[p], y[p]
    xa, ya, xn, yn = x[:600], y[:600], x[600:], y[600:]
    by_class = {k: torch.where(ya == k)[0] for k in range(10)}
    model = Embedder(c.dim)
    opt = torch.optim.Adam(model.parameters(), c.lr)
    print(f"pixels, held-out images: recall@1 {recall_at_1(None, xn, yn):.3f} mAP {mean_ap(None, xn, yn):.3f}")
    print(f"untrained: mAP {mean_ap(model, xn, yn):.3f}")
    for s in range(1, c.steps + 1):
        i, lab = pk_batch(by_class, c.per_class)
        loss = batch_hard(model(xa[i]), lab, c.margin)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if s % 100 == 0:
            print(f"step {s} loss {loss.item():.3f} held-out recall@1 {recall_at_1(model, xn, yn):.3f} "
                  f"mAP {mean_ap(model, xn, yn):.3f}")


main()
