"""Which marker comes first?  Reference implementation for the order-probing
experiments (section 4.1): a small transformer encoder must tell which one of
three marker symbols occurs first in a stream of filler symbols."""
import argparse
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

N_FILL, N_MARK, CLS = 20, 3, 23
VOCAB = N_FILL + N_MARK + 1


def make_split(n, length, seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, N_FILL, size=(n, length))
    y = np.zeros(n, dtype=np.int64)
    for i in range(n):
        pos = rng.choice(length, size=N_MARK, replace=False)
        x[i, pos] = N_FILL + np.arange(N_MARK)
        y[i] = int(np.argmin(pos))
    x = np.concatenate([np.full((n, 1), CLS), x], axis=1)
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y))


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.0, max_len=512):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(1000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        x = x + self.pe[: x.size(0)]
        return self.dropout(x)


class OrderProbe(nn.Module):
    def __init__(self, d_model=48, nhead=4, layers=2):
        super().__init__()
        self.d_model = d_model
        self.embed = nn.Embedding(VOCAB, d_model)
        self.pos = PositionalEncoding(d_model)
        block = nn.TransformerEncoderLayer(
            d_model, nhead, dim_feedforward=96, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(d_model)
        self.out = nn.Linear(d_model, N_MARK)
        nn.init.normal_(self.embed.weight, std=d_model ** -0.5)

    def forward(self, tokens):
        h = self.embed(tokens) * math.sqrt(self.d_model)
        h = self.pos(h)
        h = self.encoder(h)
        return self.out(self.norm(h[:, 0]))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    hits, total = 0, 0
    for x, y in loader:
        hits += (model(x).argmax(-1) == y).sum().item()
        total += len(y)
    return hits / total


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=14)
    ap.add_argument("--batch-size", type=int, default=64)
    ap.add_argument("--lr", type=float, default=1.5e-3)
    ap.add_argument("--length", type=int, default=14)
    ap.add_argument("--seed", type=int, default=0)
    args = ap.parse_args()

    torch.manual_seed(args.seed)
    train = DataLoader(make_split(3600, args.length, args.seed + 1), batch_size=args.batch_size, shuffle=True)
    test = DataLoader(make_split(800, args.length, args.seed + 2), batch_size=200)

    model = OrderProbe()
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-2)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, args.lr, total_steps=args.epochs * len(train), pct_start=0.15)

    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        for x, y in train:
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            running += loss.item() * len(y)
        if epoch % 3 == 2 or epoch == args.epochs - 1:
            print(f"epoch {epoch + 1:02d}  loss {running / len(train.dataset):.4f}")
    print(f"test accuracy {evaluate(model, test):.4f}")


if __name__ == "__main__":
    main()
