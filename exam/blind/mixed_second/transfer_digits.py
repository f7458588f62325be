"""Train on digits 0-4, then carry the features over to digits 5-9 with few examples."""
import argparse
import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits


class Classifier(nn.Module):
    def __init__(self, n_out, width=64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.head = nn.Linear(width, n_out)

    def forward(self, x):
        return self.head(self.body(x))


def make_optimizer(model, body_lr, head_lr):
    return torch.optim.Adam([
        {"params": model.body.parameters(), "lr": body_lr},
        {"params": model.head.parameters(), "lr": head_lr},
    ])


def fit(model, opt, x, y, epochs, bs=32):
    lossf = nn.CrossEntropyLoss()
    for ep in range(epochs):
        total = 0.0
        for idx in torch.randperm(len(x)).split(bs):
            loss = lossf(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        if ep % max(1, epochs // 5) == 0 or ep == epochs - 1:
            print(f"  epoch {ep:3d} loss {total / len(x):.4f}")


@torch.no_grad()
def score(model, x, y):
    return (model(x).argmax(1) == y).float().mean().item()


def load(rng):
    d = load_digits()
    x = torch.tensor(d.data / 16, dtype=torch.float32)
    y = torch.tensor(d.target)
    p = torch.tensor(rng.permutation(len(x)))
    return x[p], y[p]


def main(args):
    torch.manual_seed(args.seed)
    x, y = load(np.random.default_rng(args.seed))
    low, high = y < 5, y >= 5
    xs, ys = x[low], y[low]
    xt, yt = x[high], y[high] - 5
    n = args.shots * 5

    model = Classifier(5)
    print("source task")
    opt = make_optimizer(model, 1e-3, 1e-3)
    fit(model, opt, xs[:700], ys[:700], args.epochs)
    print(f"source accuracy {score(model, xs[700:], ys[700:]):.3f}")

    print("target task")
    opt = make_optimizer(model, args.body_lr, args.head_lr)
    model.head = nn.Linear(model.head.in_features, 5)
    fit(model, opt, xt[:n], yt[:n], 2 * args.epochs)
    print(f"target accuracy with {n} examples {score(model, xt[n:], yt[n:]):.3f}")


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=20)
    ap.add_argument("--shots", type=int, default=20)
    ap.add_argument("--body-lr", type=float, default=1e-4)
    ap.add_argument("--head-lr", type=float, default=1e-2)
    ap.add_argument("--seed", type=int, default=0)
    main(ap.parse_args())
