"""Stateful character model: B parallel streams read in order, hidden state carried across chunks."""
import os, sysconfig, math
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

SEED = 0
B, T = 16, 40


class Streams(IterableDataset):
    """Cuts a text in B contiguous columns and yields consecutive (T, B) chunks."""

    def __init__(self, text, table):
        ids = torch.tensor([table[c] for c in text if c in table])
        n = (len(ids) - 1) // B
        self.x = ids[:n * B].view(B, n).t()
        self.y = ids[1:n * B + 1].view(B, n).t()

    def __iter__(self):
        for t in range(0, len(self.x) - T, T):
            yield self.x[t:t + T], self.y[t:t + T]


class CharGRU(nn.Module):
    def __init__(self, v, d=96):
        super().__init__()
        self.emb = nn.Embedding(v, d)
        self.rnn = nn.GRU(d, d)
        self.out = nn.Linear(d, v)
        self.out.weight = self.emb.weight

    def forward(self, x, h):
        y, h = self.rnn(self.emb(x), h)
        return self.out(y), h


def text(*names):
    return "".join(open(os.path.join(sysconfig.get_path("stdlib"), n), encoding="utf-8").read() for n in names)


@torch.no_grad()
def bits(model, loader):
    model.eval()
    h, tot, n = None, 0., 0
    for x, y in loader:
        z, h = model(x, h)
        tot += nn.functional.cross_entropy(z.flatten(0, 1), y.flatten(), reduction="sum").item()
        n += y.numel()
    model.train()
    return tot / n / math.log(2)


def main():
    torch.manual_seed(SEED)
    tr = text("textwrap.py", "shlex.py", "heapq.py", "queue.py", "csv.py")
    te = text("sched.py", "bisect.py")
    table = {c: i for i, c in enumerate(sorted(set(tr)))}
    # order matters here, so no shuffling and no worker processes; batches come ready-made
    train = DataLoader(Streams(tr, table), batch_size=None)
    test = DataLoader(Streams(te, table), batch_size=None)
    model = CharGRU(len(table))
    nn.init.normal_(model.emb.weight, std=.1)
    opt = torch.optim.AdamW(model.parameters(), 4e-3)
    print(f"{sum(p.numel() for p in model.parameters())} parameters, untrained {bits(model, test):.2f} bits per character")
    for ep in range(3):
        h = None
        for x, y in train:
            z, h = model(x, h)
            h = h.detach()
            loss = nn.functional.cross_entropy(z.flatten(0, 1), y.flatten())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), .5)
            opt.step()
        print(f"epoch {ep} train {loss.item() / math.log(2):.2f} held-out {bits(model, test):.2f} bits per character")


main()
