"""Explicit-feedback matrix factorisation by alternating stochastic updates of the user and item blocks."""
import argparse
import itertools
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn


@dataclass
class Options:
    users: int = 500
    items: int = 300
    density: float = 0.12
    rank: int = 5
    dim: int = 8
    rounds: int = 22
    inner: int = 2
    batch: int = 1024
    lr: float = 0.03
    reg: float = 0.02
    ema: float = 0.95
    seed: int = 19


def ratings(o):
    g = torch.Generator().manual_seed(o.seed)
    p, q = torch.randn(o.users, o.rank, generator=g), torch.randn(o.items, o.rank, generator=g)
    bu, bi = 0.4 * torch.randn(o.users, generator=g), 0.4 * torch.randn(o.items, generator=g)
    full = 3.2 + bu[:, None] + bi[None, :] + 0.5 * p @ q.T + 0.25 * torch.randn(o.users, o.items, generator=g)
    u, i = torch.nonzero(torch.rand(o.users, o.items, generator=g) < o.density, as_tuple=True)
    r = full[u, i].clamp(0.5, 5.0)
    order = torch.randperm(len(u), generator=g)
    cut = int(0.85 * len(u))
    pick = lambda idx: (u[idx], i[idx], r[idx])
    return pick(order[:cut]), pick(order[cut:])


class Block(nn.Module):
    def __init__(self, n, dim):
        super().__init__()
        self.vec = nn.Embedding(n, dim)
        self.bias = nn.Embedding(n, 1)
        nn.init.normal_(self.vec.weight, std=0.3)
        nn.init.zeros_(self.bias.weight)

    def forward(self, idx):
        return self.vec(idx), self.bias(idx).squeeze(-1)


class Factoriser(nn.Module):
    def __init__(self, o, offset):
        super().__init__()
        self.user = Block(o.users, o.dim)
        self.item = Block(o.items, o.dim)
        self.register_buffer("offset", torch.tensor(float(offset)))

    def forward(self, u, i):
        pu, bu = self.user(u)
        qi, bi = self.item(i)
        return self.offset + bu + bi + (pu * qi).sum(-1), pu, qi


def set_trainable(module, flag):
    for p in module.parameters():
        p.requires_grad_(flag)


class Averaged:
    """Running average of the weights, used for scoring only."""

    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = {k: v.detach().clone() for k, v in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model):
        for k, v in model.state_dict().items():
            self.shadow[k].lerp_(v, 1 - self.decay)


def batches(data, size):
    perm = torch.randperm(len(data[0]))
    for s in range(0, len(perm), size):
        idx = perm[s:s + size]
        yield tuple(t[idx] for t in data)


@torch.no_grad()
def rmse(model, data, weights=None):
    if weights is None:
        pred, _, _ = model(data[0], data[1])
    else:
        pred, _, _ = torch.func.functional_call(model, weights, (data[0], data[1]))
    return (pred.clamp(0.5, 5.0) - data[2]).pow(2).mean().sqrt().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rounds", type=int, default=Options.rounds)
    o = Options(rounds=ap.parse_args().rounds)
    torch.manual_seed(o.seed)
    np.random.seed(o.seed)
    train, test = ratings(o)
    offset = train[2].mean()
    model = Factoriser(o, offset)
    avg = Averaged(model, o.ema)
    opts = {"user": torch.optim.Adam(model.user.parameters(), lr=o.lr),
            "item": torch.optim.Adam(model.item.parameters(), lr=o.lr)}
    scheds = [torch.optim.lr_scheduler.ExponentialLR(op, gamma=0.9) for op in opts.values()]
    base = (test[2] - offset).pow(2).mean().sqrt().item()
    print(f"{len(train[0])} ratings, constant-prediction rmse {base:.4f}")
    for rnd, side in itertools.product(range(1, o.rounds + 1), ("user", "item")):
        other = "item" if side == "user" else "user"
        set_trainable(getattr(model, side), True)
        set_trainable(getattr(model, other), False)
        total = 0.0
        for _ in range(o.inner):
            for u, i, r in batches(train, o.batch):
                pred, pu, qi = model(u, i)
                loss = (pred - r).pow(2).mean() + o.reg * (pu.pow(2).sum(-1) + qi.pow(2).sum(-1)).mean()
                opts[side].zero_grad()
                loss.backward()
                opts[side].step()
                avg.update(model)
                total += loss.item() * len(r)
        if side == "item":
            for s in scheds:
                s.step()
            if rnd % 4 == 0:
                print(f"round {rnd:2d} objective {total / o.inner / len(train[0]):.4f} "
                      f"test rmse {rmse(model, test):.4f} averaged {rmse(model, test, avg.shadow):.4f}")
    print(f"final test rmse {rmse(model, test, avg.shadow):.4f} against {base:.4f}")


if __name__ == "__main__":
    main()
