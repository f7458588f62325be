"""Implicit-feedback recommender (BPR) with an endless stream of triples.

Embeddings are sparse, so they get SparseAdam; the small dense tower has its own optimizer.
"""
import argparse
import itertools

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


def make_interactions(n_users, n_items, rng):
    """users and items live in 12 taste groups; returns a list of liked items per user"""
    user_taste = rng.dirichlet(np.full(12, 0.08), n_users)
    item_group = rng.integers(0, 12, n_items)
    popularity = rng.gamma(1.5, 1.0, n_items) + 0.2
    liked = []
    for u in range(n_users):
        p = user_taste[u][item_group] * popularity
        liked.append(rng.choice(n_items, size=14, replace=False, p=(p + 1e-4) / (p + 1e-4).sum()))
    return liked


class TripleStream(IterableDataset):
    def __init__(self, train, n_items, seed):
        self.train = train
        self.sets = [set(t.tolist()) for t in train]
        self.n_items = n_items
        self.rng = np.random.default_rng(seed)

    def __iter__(self):
        while True:
            u = int(self.rng.integers(len(self.train)))
            pos = int(self.rng.choice(self.train[u]))
            neg = int(self.rng.integers(self.n_items))
            while neg in self.sets[u]:
                neg = int(self.rng.integers(self.n_items))
            yield u, pos, neg


class Recommender(nn.Module):
    def __init__(self, n_users, n_items, dim):
        super().__init__()
        self.user = nn.Embedding(n_users, dim, sparse=True)
        self.item = nn.Embedding(n_items, dim, sparse=True)
        self.item_bias = nn.Embedding(n_items, 1, sparse=True)
        for table in (self.user, self.item):
            nn.init.normal_(table.weight, std=0.1)
        nn.init.zeros_(self.item_bias.weight)
        self.tower = nn.Linear(dim, dim)
        nn.init.eye_(self.tower.weight)

    def score(self, users, items):
        u = self.tower(self.user(users))
        return (u * self.item(items)).sum(-1) + self.item_bias(items).squeeze(-1)

    def all_scores(self):
        return self.tower(self.user.weight) @ self.item.weight.t() + self.item_bias.weight.t()


@torch.no_grad()
def hit_rate(model, train, held_out, k=10):
    scores = model.all_scores()
    for u, items in enumerate(train):
        scores[u, items] = float("-inf")
    top = scores.topk(k, dim=1).indices
    return (top.unsqueeze(-1) == torch.tensor(held_out).unsqueeze(1)).any(1).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", type=int, default=500)
    parser.add_argument("--items", type=int, default=300)
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--steps", type=int, default=700)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    a = parser.parse_args()

    torch.manual_seed(a.seed)
    liked = make_interactions(a.users, a.items, np.random.default_rng(a.seed))
    train = [l[:11] for l in liked]
    held_out = np.stack([l[11:] for l in liked])

    model = Recommender(a.users, a.items, a.dim)
    sparse_params = [p for n, p in model.named_parameters() if not n.startswith("tower")]
    opt_emb = torch.optim.SparseAdam(sparse_params, lr=1e-2)
    opt_tower = torch.optim.AdamW(model.tower.parameters(), lr=1e-3, weight_decay=1e-2)
    loader = DataLoader(TripleStream(train, a.items, a.seed), batch_size=a.batch)

    print("hit@10 before training %.3f" % hit_rate(model, train, held_out))
    running = 0.0
    for step, (u, pos, neg) in enumerate(itertools.islice(loader, a.steps), start=1):
        diff = model.score(u, pos) - model.score(u, neg)
        loss = -F.logsigmoid(diff).mean()
        opt_emb.zero_grad()
        opt_tower.zero_grad()
        loss.backward()
        opt_emb.step()
        opt_tower.step()
        running += loss.item()
        if step % 100 == 0:
            print(f"step {step} bpr {running / 100:.4f} hit@10 {hit_rate(model, train, held_out):.3f}")
            running = 0.0
    print("pair accuracy on the last batch %.3f" % (diff > 0).float().mean())
    print("hit@10 %.4f" % hit_rate(model, train, held_out))


if __name__ == "__main__":
    main()
