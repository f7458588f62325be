"""makemore-like MLP language model on invented names."""
import random

import torch
import torch.nn.functional as F
from rich.progress import Progress, SpinnerColumn, TextColumn, BarColumn, MofNCompleteColumn

random.seed(0)
g = torch.Generator().manual_seed(2147483647)

starts, mids, ends = ["ka", "mo", "ri", "te"], ["lan", "rin", "dor"], ["a", "us", "o"]
words = [random.choice(starts) + random.choice(mids) + random.choice(ends) for _ in range(400)]
valid = {a + b + c for a in starts for b in mids for c in ends}

chars = sorted(set("".join(words)))
stoi = {s: i + 1 for i, s in enumerate(chars)}
stoi["."] = 0
itos = {i: s for s, i in stoi.items()}
vocab, block_size = len(itos), 3


def build(ws):
    X, Y = [], []
    for w in ws:
        context = [0] * block_size
        for ch in w + ".":
            ix = stoi[ch]
            X.append(context)
            Y.append(ix)
            context = context[1:] + [ix]
    return torch.tensor(X), torch.tensor(Y)


Xtr, Ytr = build(words)

C = torch.randn((vocab, 8), generator=g)
W1 = torch.randn((8 * block_size, 64), generator=g) * (5 / 3) / (8 * block_size) ** 0.5
b1 = torch.zeros(64)
W2 = torch.randn((64, vocab), generator=g) * 0.01
b2 = torch.zeros(vocab)
parameters = [C, W1, b1, W2, b2]
for p in parameters:
    p.requires_grad = True


def forward(idx):
    h = torch.tanh(C[idx].view(-1, 8 * block_size) @ W1 + b1)
    return h @ W2 + b2


steps, lossi = 800, []
with Progress(SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()) as progress:
    task = progress.add_task("training", total=steps)
    for i in range(steps):
        ix = torch.randint(0, Xtr.shape[0], (64,), generator=g)
        loss = F.cross_entropy(forward(Xtr[ix]), Ytr[ix])
        for p in parameters:
            p.grad = None
        loss.backward()
        lr = 0.3 if i < 600 else 0.05
        for p in parameters:
            p.data += -lr * p.grad
        lossi.append(loss.item())
        progress.update(task, advance=1)

good = 0
for _ in range(100):
    out, context = "", [0] * block_size
    while len(out) < 12:
        with torch.no_grad():
            probs = F.softmax(forward(torch.tensor([context])), dim=1)
        ix = torch.multinomial(probs, 1, generator=g).item()
        if ix == 0:
            break
        out += itos[ix]
        context = context[1:] + [ix]
    good += out in valid
print(f"first loss {lossi[0]:.4f} last loss {sum(lossi[-50:]) / 50:.4f} well-formed samples {good}/100")
