"""Bootstrap-style self-supervision on sensor windows: online/target networks, then a linear probe."""
import copy
import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Hyper:
    unlabeled: int = 1500
    labeled: int = 120
    test: int = 600
    length: int = 64
    channels: int = 3
    feat: int = 48
    proj: int = 32
    epochs: int = 12
    batch: int = 100
    lr: float = 2e-3
    tau: float = 0.97
    seed: int = 8


def windows(n, h, rng):
    """Five movement classes: they differ in frequency and waveform, amplitude and phase are nuisance."""
    y = rng.integers(0, 5, n)
    t = np.arange(h.length)
    freq = np.array([2, 3, 3, 5, 5])[y] + rng.normal(0, 0.15, n)
    phase = rng.uniform(0, 2 * np.pi, (n, h.channels, 1))
    wave = np.sin(2 * np.pi * freq[:, None, None] * t / h.length + phase)
    square = np.isin(y, [2, 4])[:, None, None]
    wave = np.where(square, np.sign(wave), wave)
    amp = rng.uniform(0.5, 2.0, (n, h.channels, 1))
    x = amp * wave + rng.normal(0, 0.25, wave.shape)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def augment(x):
    n, c, t = x.shape
    scale = 0.6 + 0.8 * torch.rand(n, c, 1)
    shift = torch.randint(0, t, (n,))
    idx = (torch.arange(t)[None, :] + shift[:, None]) % t
    x = x.gather(2, idx[:, None, :].expand(n, c, t))
    sign = torch.where(torch.rand(n, c, 1) < 0.5, -1.0, 1.0)
    return scale * sign * x + 0.1 * torch.randn_like(x)


class ConvEncoder(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(h.channels, 24, 7, padding=3, bias=False), nn.BatchNorm1d(24), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(24, h.feat, 5, padding=2, bias=False), nn.BatchNorm1d(h.feat), nn.ReLU(),
        )

    def forward(self, x):
        return self.net(x).mean(-1)


def mlp(i, hidden, o):
    return nn.Sequential(nn.Linear(i, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, o))


class Bootstrap(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.encoder = ConvEncoder(h)
        self.projector = mlp(h.feat, 64, h.proj)
        self.predictor = mlp(h.proj, 64, h.proj)
        self.target = copy.deepcopy(nn.Sequential(self.encoder, self.projector))
        self.target.requires_grad_(False)

    def half_loss(self, a, b):
        guess = F.normalize(self.predictor(self.projector(self.encoder(a))), dim=-1)
        with torch.no_grad():
            goal = F.normalize(self.target(b), dim=-1)
        return (2 - 2 * (guess * goal).sum(-1)).mean()

    def forward(self, a, b):
        return 0.5 * (self.half_loss(a, b) + self.half_loss(b, a))

    @torch.no_grad()
    def follow(self, tau):
        online = nn.Sequential(self.encoder, self.projector)
        for t, o in zip(self.target.parameters(), online.parameters()):
            t.mul_(tau).add_(o, alpha=1 - tau)


def pretrain(model, x, h):
    params = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.AdamW(params, lr=h.lr, weight_decay=1e-4)
    steps, total = 0, h.epochs * (len(x) // h.batch)
    for epoch in range(h.epochs):
        model.train()
        logs = []
        for idx in torch.randperm(len(x)).split(h.batch):
            loss = model(augment(x[idx]), augment(x[idx]))
            opt.zero_grad()
            loss.backward()
            opt.step()
            tau = 1 - (1 - h.tau) * (math.cos(math.pi * steps / total) + 1) / 2
            model.follow(tau)
            logs.append(loss.item())
            steps += 1
        if epoch % 3 == 2:
            z = F.normalize(embed(model.encoder, x[:300]), dim=-1)
            print(f"epoch {epoch + 1:2d} loss {np.mean(logs):.4f} embedding std {z.std(0).mean():.4f}")


@torch.no_grad()
def embed(encoder, x):
    encoder.eval()
    return encoder(x)


def linear_probe(encoder, train, test, iters=150):
    """Logistic regression on frozen features, full-batch Adam."""
    ztr, zte = embed(encoder, train[0]), embed(encoder, test[0])
    mu, sd = ztr.mean(0), ztr.std(0) + 1e-6
    ztr, zte = (ztr - mu) / sd, (zte - mu) / sd
    head = nn.Linear(ztr.shape[1], 5)
    opt = torch.optim.Adam(head.parameters(), lr=0.05, weight_decay=1e-3)
    for _ in range(iters):
        opt.zero_grad()
        F.cross_entropy(head(ztr), train[1]).backward()
        opt.step()
    return (head(zte).argmax(-1) == test[1]).float().mean().item()


def main():
    h = Hyper()
    torch.manual_seed(h.seed)
    rng = np.random.default_rng(h.seed)
    pool, _ = windows(h.unlabeled, h, rng)
    train, test = windows(h.labeled, h, rng), windows(h.test, h, rng)
    model = Bootstrap(h)
    before = linear_probe(model.encoder, train, test)
    pretrain(model, pool, h)
    after = linear_probe(model.encoder, train, test)
    print(f"probe accuracy: random encoder {before:.4f}, pretrained encoder {after:.4f}")


if __name__ == "__main__":
    main()
