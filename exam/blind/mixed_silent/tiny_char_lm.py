# char-level language model, decoder-only, input and output embeddings shared
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(0)
torch.manual_seed(0)

SUBJ = ["the cat", "a dog", "my friend", "the old man", "her sister"]
VERBS = ["sees", "likes", "finds", "wants", "paints"]
OBJ = ["the moon", "a red hat", "some tea", "the sea", "a new song"]
TAIL = ["today", "every day", "at night", "in the rain"]


def make_text(n):
    return "".join(f"{random.choice(SUBJ)} {random.choice(VERBS)} {random.choice(OBJ)} {random.choice(TAIL)}.\n"
                   for _ in range(n))


train_text, val_text = make_text(900), make_text(120)
chars = sorted(set(train_text))
stoi = {c: i for i, c in enumerate(chars)}
enc = lambda s: torch.tensor([stoi[c] for c in s])
train_ids, val_ids = enc(train_text), enc(val_text)
T, D, V = 48, 48, len(chars)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv = nn.Linear(D, 3 * D)
        self.proj = nn.Linear(D, D)
        self.mlp = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, 4, D // 4).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, D))
        return x + self.mlp(self.n2(x))


class CharLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(V, D)
        self.pos = nn.Parameter(torch.randn(T, D) * 0.02)
        self.layers = nn.ModuleList([Layer(), Layer()])
        self.norm = nn.LayerNorm(D)
        self.head = nn.Linear(D, V, bias=False)
        nn.init.normal_(self.tok.weight, std=0.02)
        self.head.weight = self.tok.weight

    def forward(self, idx):
        x = self.tok(idx) + self.pos[: idx.size(1)]
        for l in self.layers:
            x = l(x)
        return self.head(self.norm(x))


def batch(ids, n):
    s = torch.randint(0, len(ids) - T - 1, (n,)).tolist()
    return (torch.stack([ids[i:i + T] for i in s]), torch.stack([ids[i + 1:i + T + 1] for i in s]))


model = CharLM()
print("parameters:", sum(p.numel() for p in model.parameters()))
opt = torch.optim.AdamW(model.parameters(), lr=4e-3, betas=(0.9, 0.95), weight_decay=0.05)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=4e-3, total_steps=300, pct_start=0.1)
starts = range(0, len(val_ids) - T - 1, T)
vx = torch.stack([val_ids[i:i + T] for i in starts])
vy = torch.stack([val_ids[i + 1:i + T + 1] for i in starts])
unigram = torch.bincount(train_ids, minlength=V).float()
unigram = (unigram / unigram.sum()).log()
print(f"unigram baseline: {-unigram[vy].mean():.3f} nats")

for it in range(300):
    xb, yb = batch(train_ids, 24)
    loss = F.cross_entropy(model(xb).flatten(0, 1), yb.flatten())
    opt.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    sched.step()
    if it % 60 == 59:
        with torch.no_grad():
            vl = F.cross_entropy(model(vx).flatten(0, 1), vy.flatten()).item()
        print(f"iter {it + 1:4d} train {loss.item():.3f} val {vl:.3f} ppl {math.exp(vl):.2f}")
torch.save(model.state_dict(), "tiny_char_lm.pt")
