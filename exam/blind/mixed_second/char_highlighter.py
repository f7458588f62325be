"""Character-level syntax highlighter: tags every character of a source line."""
import argparse, io, os, random, sysconfig, tokenize
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

TAGS = ["other", "name", "string", "comment", "number", "op"]
KIND = {tokenize.NAME: 1, tokenize.STRING: 2, tokenize.COMMENT: 3, tokenize.NUMBER: 4, tokenize.OP: 5}


def lines_of(path):
    text = open(path, encoding="utf-8").read()
    lines = text.splitlines()
    tags = [[0] * len(l) for l in lines]
    for t in tokenize.generate_tokens(io.StringIO(text).readline):
        if t.type in KIND and t.start[0] == t.end[0]:
            for c in range(t.start[1], t.end[1]):
                tags[t.start[0] - 1][c] = KIND[t.type]
    out = []
    for l, g in zip(lines, tags):
        if 4 < len(l.strip()) and len(l) < 100 and l.isascii() and any(g):
            out.append((torch.tensor([ord(ch) + 1 for ch in l]), torch.tensor(g)))
    return out


def collate(batch):
    xs, ys = zip(*batch)
    return pad_sequence(xs, batch_first=True), pad_sequence(ys, batch_first=True)


class Tagger(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.emb = nn.Embedding(130, 32, padding_idx=0)
        self.rnn = nn.GRU(32, width, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * width, len(TAGS))

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    hit = torch.zeros(len(TAGS))
    tot = torch.zeros(len(TAGS))
    for x, y in loader:
        pred = model(x).argmax(-1)
        keep = y != -100
        hit += torch.bincount(y[keep & (pred == y)], minlength=len(TAGS))
        tot += torch.bincount(y[keep], minlength=len(TAGS))
    return hit.sum() / tot.sum(), hit / tot, int(tot.sum())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--lr", type=float, default=4e-3)
    ap.add_argument("--seed", type=int, default=0)
    a = ap.parse_args()
    torch.manual_seed(a.seed)
    random.seed(a.seed)
    std = sysconfig.get_path("stdlib")
    files = [os.path.join(std, f) for f in ("shlex.py", "bisect.py", "textwrap.py", "queue.py", "sched.py",
                                            "fnmatch.py", "csv.py")]
    train = [p for f in files[:6] for p in lines_of(f)]
    test = [p for f in files[6:] for p in lines_of(f)]
    print(f"{len(train)} train lines, {len(test)} test lines, "
          f"{sum(len(x) for x, _ in test)} test characters")
    tl = DataLoader(train, 16, shuffle=True, collate_fn=collate)
    vl = DataLoader(test, 64, collate_fn=collate)
    model = Tagger()
    opt = torch.optim.Adam(model.parameters(), lr=a.lr)
    lossf = nn.CrossEntropyLoss()
    for ep in range(a.epochs):
        model.train()
        run = 0.0
        for x, y in tl:
            loss = lossf(model(x).flatten(0, 1), y.flatten())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            run += loss.item()
        acc, per, n = evaluate(model, vl)
        print(f"epoch {ep} loss {run / len(tl):.4f} test char acc {acc:.4f} over {n} "
              + " ".join(f"{t}={v:.2f}" for t, v in zip(TAGS, per)))
    print(f"final accuracy {acc:.4f}")


if __name__ == "__main__":
    main()
