"""A small decoder-only transformer on bracketed arithmetic text.

Weight tying, gradient checkpointing, decay / no-decay parameter groups and
cosine warm restarts, in one file.
"""
import argparse
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


def make_text(n_lines, seed):
    rnd = random.Random(seed)
    colors = {"red": "apple", "blue": "whale", "green": "frog", "gray": "stone"}
    lines = []
    for _ in range(n_lines):
        keys = rnd.sample(sorted(colors), rnd.randint(1, 3))
        left = ",".join(keys)
        right = ",".join(colors[k] for k in keys)
        lines.append(f"[{left}]->[{right}];")
    return "".join(lines)


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        att = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)
        future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        att = att.masked_fill(future, float("-inf")).softmax(dim=-1)
        x = x + self.proj((att @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln2(x))


class TinyGPT(nn.Module):
    def __init__(self, vocab, block, d=48, heads=4, layers=2):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.pos = nn.Embedding(block, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.ln = nn.LayerNorm(d)
        self.head = nn.Linear(d, vocab, bias=False)
        self.apply(self._init)
        self.head.weight = self.tok.weight

    @staticmethod
    def _init(m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, std=0.05)
        if isinstance(m, nn.Linear) and m.bias is not None:
            nn.init.zeros_(m.bias)

    def forward(self, idx):
        x = self.tok(idx) + self.pos(torch.arange(idx.size(1), device=idx.device))
        for blk in self.blocks:
            x = checkpoint(blk, x, use_reentrant=False) if self.training else blk(x)
        return self.head(self.ln(x))


def param_groups(model, weight_decay):
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    return [{"params": decay, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=420)
    ap.add_argument("--block", type=int, default=56)
    ap.add_argument("--batch", type=int, default=20)
    ap.add_argument("--lr", type=float, default=4e-3)
    args = ap.parse_args()
    torch.manual_seed(0)

    train_text, test_text = make_text(1500, 1), make_text(150, 2)
    stoi = {c: i for i, c in enumerate(sorted(set(train_text)))}
    train = torch.tensor([stoi[c] for c in train_text])
    test = torch.tensor([stoi[c] for c in test_text])
    offs = torch.arange(args.block)

    model = TinyGPT(len(stoi), args.block)
    opt = torch.optim.AdamW(param_groups(model, 0.05), lr=args.lr, betas=(0.9, 0.98))
    sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=60, T_mult=2, eta_min=1e-4)
    for step in range(args.steps):
        start = torch.randint(len(train) - args.block - 1, (args.batch, 1))
        x, y = train[start + offs], train[start + offs + 1]
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        if step % 105 == 104:
            print(f"step {step + 1} loss {loss.item():.3f} lr {sched.get_last_lr()[0]:.2e}")

    model.eval()
    n = (len(test) - 1) // args.block
    x = test[: n * args.block].view(n, -1)
    y = test[1: n * args.block + 1].view(n, -1)
    with torch.no_grad():
        bpc = F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item() / math.log(2)
    freq = torch.bincount(train).float() / len(train)
    unigram = -freq[test].log2().mean().item()
    print(f"test bits/char {bpc:.3f} (unigram {unigram:.3f})")


if __name__ == "__main__":
    main()
