"""Mixup with soft targets, accumulation over a ragged number of micro-batches (Accelerate)."""
import argparse
import torch
from torch import nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


def mixup(x, y, n, alpha):
    lam = torch.distributions.Beta(alpha, alpha).sample((len(x), 1))
    j = torch.randperm(len(x))
    t = nn.functional.one_hot(y, n).float()
    return lam * x + (1 - lam) * x[j], lam * t + (1 - lam) * t[j]


def evaluate(acc, model, loader):
    model.eval()
    ok = n = nll = 0
    with torch.no_grad():
        for x, y in loader:
            z, y = acc.gather_for_metrics((model(x), y))
            ok += (z.argmax(1) == y).sum().item()
            nll += nn.functional.cross_entropy(z, y, reduction="sum").item()
            n += len(y)
    model.train()
    return ok / n, nll / n


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--alpha", type=float, default=.4)
    p.add_argument("--accum", type=int, default=4)
    p.add_argument("--epochs", type=int, default=30)
    p.add_argument("--train-size", type=int, default=300)
    p.add_argument("--seed", type=int, default=0)
    a = p.parse_args()
    set_seed(a.seed)
    acc = Accelerator(cpu=True, gradient_accumulation_steps=a.accum)
    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
    i = torch.randperm(len(x))
    tr, te = i[:a.train_size], i[a.train_size:]
    train = DataLoader(TensorDataset(x[tr], y[tr]), 16, shuffle=True)
    test = DataLoader(TensorDataset(x[te], y[te]), 512)
    model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 64), nn.GELU(), nn.Linear(64, 10))
    opt = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=.05)
    model, opt, train, test = acc.prepare(model, opt, train, test)
    for ep in range(a.epochs):
        tot = 0.0
        for xb, yb in train:
            with acc.accumulate(model):
                xm, tm = mixup(xb, yb, 10, a.alpha)
                loss = nn.functional.cross_entropy(model(xm), tm)
                acc.backward(loss)
                opt.step()
                opt.zero_grad()
            tot += loss.item()
        if ep % 6 == 5:
            ok, nll = evaluate(acc, model, test)
            # the training loss stays high: the mixed targets are soft
            acc.print(f"epoch {ep + 1} mixed loss {tot / len(train):.3f} test NLL {nll:.3f} accuracy {ok:.3f}")


if __name__ == "__main__":
    main()
