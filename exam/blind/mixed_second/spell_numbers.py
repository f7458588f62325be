"""Sequence to sequence: '342' -> 'three hundred forty two'."""
import random
import torch
from torch import nn

SEED = 0
ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen").split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
VOCAB = ["<pad>", "<bos>", "<eos>"] + ONES + TENS + ["hundred", "thousand"]
ID = {w: i for i, w in enumerate(VOCAB)}


def spell(n):
    if n < 20:
        return [ONES[n]]
    if n < 100:
        return [TENS[n // 10 - 2]] + ([ONES[n % 10]] if n % 10 else [])
    big, unit = (1000, "thousand") if n >= 1000 else (100, "hundred")
    return spell(n // big) + [unit] + (spell(n % big) if n % big else [])


def batchify(numbers):
    src = [[int(c) + 1 for c in str(n)] for n in numbers]
    tgt = [[ID[w] for w in spell(n)] for n in numbers]
    S = max(map(len, src))
    T = max(map(len, tgt)) + 1
    x = torch.tensor([[0] * (S - len(s)) + s for s in src])
    inp = torch.tensor([[1] + t + [0] * (T - 1 - len(t)) for t in tgt])
    out = torch.tensor([t + [2] + [0] * (T - 1 - len(t)) for t in tgt])
    return x, inp, out


class Seq2Seq(nn.Module):
    def __init__(self, d=96):
        super().__init__()
        self.src = nn.Embedding(11, 32)
        self.tgt = nn.Embedding(len(VOCAB), 32)
        self.enc = nn.GRU(32, d, batch_first=True)
        self.dec = nn.GRU(32, d, batch_first=True)
        self.out = nn.Linear(d, len(VOCAB))

    def forward(self, x, inp):
        _, h = self.enc(self.src(x))
        y, _ = self.dec(self.tgt(inp), h)
        return self.out(y)

    @torch.no_grad()
    def generate(self, x, max_len=12):
        _, h = self.enc(self.src(x))
        tok = torch.ones(len(x), 1, dtype=torch.long)
        pieces = []
        for _ in range(max_len):
            y, _ = self.dec(self.tgt(tok), h)
            tok = self.out(y).argmax(-1)
            pieces.append(tok)
        return torch.cat(pieces, 1)


def decode(row):
    words = []
    for t in row.tolist():
        if t == 2:
            break
        words.append(VOCAB[t])
    return " ".join(words)


random.seed(SEED)
torch.manual_seed(SEED)
pool = random.sample(range(10000), 4500)
train, test = pool[:4000], pool[4000:]
model = Seq2Seq()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
sched = torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.05, total_iters=12 * 63)
crit = nn.CrossEntropyLoss(ignore_index=0)
xt, it, ot = batchify(test)
for epoch in range(12):
    random.shuffle(train)
    model.train()
    for b in range(0, len(train), 64):
        x, inp, out = batchify(train[b:b + 64])
        loss = crit(model(x, inp).transpose(1, 2), out)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
    model.eval()
    with torch.no_grad():
        val = crit(model(xt, it).transpose(1, 2), ot).item()
    print(f"epoch {epoch:2d} train {loss.item():.4f} test {val:.4f}")

answers = [decode(r) for r in model.generate(xt)]
exact = sum(a == " ".join(spell(n)) for a, n in zip(answers, test)) / len(test)
for n, a in list(zip(test, answers))[:4]:
    print(n, "->", a)
print(f"exact match {exact:.3f}")
