"""Matrix factorisation with the BPR objective on implicit feedback (leave-one-out evaluation)."""
import random
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Cfg:
    n_users: int = 600
    n_items: int = 400
    dim: int = 24
    epochs: int = 25
    batch: int = 1024
    lr: float = 0.01
    reg: float = 1e-4
    topk: int = 10
    seed: int = 5


def seed_everything(s):
    random.seed(s)
    np.random.seed(s)
    torch.manual_seed(s)


def simulate_log(cfg):
    """Users and items live on a low-dimensional taste space; popularity is long-tailed."""
    rng = np.random.default_rng(cfg.seed)
    taste = rng.normal(size=(cfg.n_users, 6))
    style = rng.normal(size=(cfg.n_items, 6))
    pop = 0.8 * rng.standard_normal(cfg.n_items)
    catalogue = rng.choice(np.arange(10_000, 99_999), cfg.n_items, replace=False)
    rows = []
    for u in range(cfg.n_users):
        logit = 1.3 * style @ taste[u] + pop
        p = np.exp(logit - logit.max())
        n = int(rng.integers(15, 35))
        picked = rng.choice(cfg.n_items, n, replace=False, p=p / p.sum())
        rows += [(f"u{u:04d}", catalogue[i], t) for t, i in enumerate(rng.permutation(picked))]
    return pd.DataFrame(rows, columns=["user", "item", "ts"])


def leave_last_out(log):
    last = log.groupby("user")["ts"].transform("max") == log["ts"]
    return log[~last], log[last]


def encode(frame):
    frame = frame.copy()
    frame["uid"] = frame["user"].astype("category").cat.codes.astype(int)
    frame["iid"] = frame["item"].astype("category").cat.codes.astype(int)
    return frame


class BPRMF(nn.Module):
    def __init__(self, n_users, n_items, dim):
        super().__init__()
        self.user = nn.Embedding(n_users, dim)
        self.item = nn.Embedding(n_items, dim)
        self.bias = nn.Embedding(n_items, 1)
        nn.init.normal_(self.user.weight, std=0.05)
        nn.init.normal_(self.item.weight, std=0.05)
        nn.init.zeros_(self.bias.weight)

    def score(self, u, i):
        return (self.user(u) * self.item(i)).sum(-1) + self.bias(i).squeeze(-1)

    def forward(self, u, pos, neg):
        diff = self.score(u, pos) - self.score(u, neg)
        reg = self.user(u).pow(2).sum(-1) + self.item(pos).pow(2).sum(-1) + self.item(neg).pow(2).sum(-1)
        return -F.logsigmoid(diff).mean(), reg.mean()

    @torch.no_grad()
    def full_scores(self):
        return self.user.weight @ self.item.weight.T + self.bias.weight.T


def sample_negatives(users, seen, n_items, rng):
    neg = rng.integers(0, n_items, len(users))
    bad = seen[users, neg]
    while bad.any():
        neg[bad] = rng.integers(0, n_items, int(bad.sum()))
        bad = seen[users, neg]
    return neg


def evaluate(model, seen, test, k):
    scores = model.full_scores().numpy().copy()
    scores[seen] = -np.inf
    hits, ndcg = [], []
    for u, i in zip(test["uid"], test["iid"]):
        rank = int((scores[u] > scores[u, i]).sum())
        hits.append(rank < k)
        ndcg.append(1 / np.log2(rank + 2) if rank < k else 0.0)
    return float(np.mean(hits)), float(np.mean(ndcg))


def main():
    cfg = Cfg()
    seed_everything(cfg.seed)
    train, test = leave_last_out(simulate_log(cfg))
    train, test = encode(train), encode(test)
    n_users, n_items = train["uid"].max() + 1, train["iid"].max() + 1
    print(f"{len(train)} train / {len(test)} test interactions, {n_users} users, {n_items} items")

    u, i = train["uid"].to_numpy(), train["iid"].to_numpy()
    seen = np.zeros((n_users, n_items), dtype=bool)
    seen[u, i] = True
    rng = np.random.default_rng(cfg.seed)
    model = BPRMF(n_users, n_items, cfg.dim)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(1, cfg.epochs + 1):
        order = rng.permutation(len(u))
        tot_rank = tot_reg = 0.0
        for s in range(0, len(order), cfg.batch):
            b = order[s:s + cfg.batch]
            neg = sample_negatives(u[b], seen, n_items, rng)
            rank_loss, reg = model(torch.as_tensor(u[b]), torch.as_tensor(i[b]), torch.as_tensor(neg))
            loss = rank_loss + cfg.reg * reg
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot_rank += rank_loss.item() * len(b)
            tot_reg += reg.item() * len(b)
        if epoch % 5 == 0:
            hr, nd = evaluate(model, seen, test, cfg.topk)
            print(f"epoch {epoch:3d} bpr {tot_rank / len(u):.4f} reg {tot_reg / len(u):.3f} "
                  f"HR@{cfg.topk} {hr:.4f} NDCG@{cfg.topk} {nd:.4f}")
    hr, nd = evaluate(model, seen, test, cfg.topk)
    print(f"final HR@{cfg.topk}={hr:.4f} NDCG@{cfg.topk}={nd:.4f}")


if __name__ == "__main__":
    main()
