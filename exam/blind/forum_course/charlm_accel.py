# char level LM, accelerate version of the old script (tied weights, TBPTT). runs fine on my laptop
import argparse, math, os, random, tempfile
import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset

ap = argparse.ArgumentParser()
ap.add_argument("--emb", type=int, default=64)
ap.add_argument("--bptt", type=int, default=32)
ap.add_argument("--streams", type=int, default=16)
ap.add_argument("--epochs", type=int, default=8)
ap.add_argument("--lr", type=float, default=6e-3)
ap.add_argument("--accum", type=int, default=2)
ap.add_argument("--out", default=tempfile.mkdtemp(prefix="charlm"))
args = ap.parse_args()
set_seed(1111)

SUBJ = ["the cat", "a sailor", "my uncle", "the old queen", "every child", "nobody"]
VERB = ["sees", "carries", "forgets", "paints", "sells", "follows"]
OBJ = ["the red boat", "a small stone", "two apples", "the moon", "a letter", "his own shadow"]
WHEN = ["at night", "in the morning", "before dinner", "on sundays", "again and again"]


def text(n, seed):
    r = random.Random(seed)
    return " ".join("%s %s %s %s." % (r.choice(SUBJ), r.choice(VERB), r.choice(OBJ), r.choice(WHEN)) for _ in range(n))


train_txt, val_txt = text(1300, 0), text(200, 1)
chars = sorted(set(train_txt + val_txt))
stoi = {c: i for i, c in enumerate(chars)}
V = len(chars)


class Streams(Dataset):
    """item i = i-th slice of all parallel streams -> order matters, keep shuffle off"""

    def __init__(self, txt):
        ids = torch.tensor([stoi[c] for c in txt])
        n = (len(ids) - 1) // args.streams
        self.x = ids[: n * args.streams].view(args.streams, n)
        self.y = ids[1: n * args.streams + 1].view(args.streams, n)
        self.n = n // args.bptt

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        s = slice(i * args.bptt, (i + 1) * args.bptt)
        return self.x[:, s], self.y[:, s]


class CharLM(nn.Module):
    def __init__(self, v, e):
        super().__init__()
        self.emb = nn.Embedding(v, e)
        self.rnn = nn.LSTM(e, e, batch_first=True)
        self.out = nn.Linear(e, v)
        self.out.weight = self.emb.weight
        nn.init.normal_(self.emb.weight, std=0.1)

    def forward(self, x, state=None):
        h, state = self.rnn(self.emb(x), state)
        return self.out(h), state


acc = Accelerator(cpu=True, gradient_accumulation_steps=args.accum)
model = CharLM(V, args.emb)
opt = torch.optim.Adam(model.parameters(), lr=args.lr, betas=(0.9, 0.98))
dl = DataLoader(Streams(train_txt), batch_size=None, shuffle=False)
vdl = DataLoader(Streams(val_txt), batch_size=None)
total = math.ceil(len(dl) / args.accum) * args.epochs
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 20) * max(0.05, 1 - s / total))
model, opt = acc.prepare(model, opt)
acc.print("vocab", V, "slices", len(dl), "params", sum(p.numel() for p in model.parameters()))


def evaluate():
    model.eval()
    nll, n, st = 0.0, 0, None
    with torch.no_grad():
        for x, y in vdl:
            lo, st = model(x, st)
            nll += F.cross_entropy(lo.reshape(-1, V), y.reshape(-1), reduction="sum").item()
            n += y.numel()
    return nll / n / math.log(2)


@torch.no_grad()
def sample(prefix="the ", n=60, temp=0.7):
    model.eval()
    x, st, s = torch.tensor([[stoi[c] for c in prefix]]), None, prefix
    for _ in range(n):
        lo, st = model(x, st)
        x = torch.multinomial(F.softmax(lo[:, -1] / temp, -1), 1)
        s += chars[x.item()]
    return s


best = 1e9
for ep in range(args.epochs):
    model.train()
    state, run = None, 0.0
    for step, (x, y) in enumerate(dl):
        if state is not None:
            state = tuple(h.detach() for h in state)
        last = step + 1 == len(dl)
        logits, state = model(x, state)
        loss = F.cross_entropy(logits.reshape(-1, V), y.reshape(-1))
        group = min(args.accum, len(dl) - step // args.accum * args.accum)
        acc.backward(loss * acc.gradient_accumulation_steps / group)
        if (step + 1) % args.accum == 0 or last:
            acc.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            opt.zero_grad()
        run += loss.item()
    bpc = evaluate()
    if bpc < best:
        best = bpc
        acc.save(acc.unwrap_model(model).state_dict(), os.path.join(args.out, "best.pt"))
    acc.print("epoch %d train %.3f val bpc %.3f" % (ep, run / len(dl), bpc))
acc.unwrap_model(model).load_state_dict(torch.load(os.path.join(args.out, "best.pt")))
acc.print(repr(sample()))
acc.print("FINAL val_bpc=%.4f (uniform would be %.2f)" % (best, math.log2(V)))
