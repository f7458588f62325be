# training with EMA weights + rare class, posting my working version since people asked
import argparse
import copy
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.metrics import balanced_accuracy_score, f1_score
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

ap = argparse.ArgumentParser()
ap.add_argument("--epochs", type=int, default=14)
ap.add_argument("--bs", type=int, default=48)
ap.add_argument("--accum", type=int, default=3)
ap.add_argument("--decay", type=float, default=0.97)
ap.add_argument("--amp", type=int, default=1)
args = ap.parse_args()
torch.manual_seed(31)
np.random.seed(31)


class Parts(Dataset):
    """class 1 = 'defect' (digit 8), about 10 percent of the rows"""

    def __init__(self, x, y, train):
        self.x = torch.tensor(x, dtype=torch.float32).view(-1, 1, 8, 8) / 8.0 - 1.0
        self.y = torch.tensor(y)
        self.train = train

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        im = self.x[i]
        if self.train:
            dy, dx = np.random.randint(-1, 2, 2)
            im = torch.roll(im, (int(dy), int(dx)), dims=(1, 2))
        return im, self.y[i]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.b1 = nn.BatchNorm2d(16)
        self.c2 = nn.Conv2d(16, 32, 3, padding=1, bias=False)
        self.b2 = nn.BatchNorm2d(32)
        self.fc = nn.Linear(32, 2)

    def forward(self, x):
        x = F.relu(self.b1(self.c1(x)))
        x = F.max_pool2d(x, 2)
        x = F.relu(self.b2(self.c2(x)))
        return self.fc(x.amax(dim=(2, 3)))


class EMA:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = copy.deepcopy(model).eval()
        for p in self.shadow.parameters():
            p.requires_grad_(False)
        self.n = 0

    @torch.no_grad()
    def update(self, model):
        self.n += 1
        d = min(self.decay, (1 + self.n) / (10 + self.n))
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.mul_(d).add_(p, alpha=1 - d)
        for s, b in zip(self.shadow.buffers(), model.buffers()):
            s.copy_(b)


@torch.no_grad()
def evaluate(model, dl):
    was = model.training
    model.eval()
    yp, yt = [], []
    for x, y in dl:
        yp += model(x).argmax(1).tolist()
        yt += y.tolist()
    model.train(was)
    return f1_score(yt, yp), balanced_accuracy_score(yt, yp)


d = load_digits()
y_all = (d.target == 8).astype(int)
xtr, xte, ytr, yte = train_test_split(d.data, y_all, test_size=0.3, stratify=y_all, random_state=1)
tr, te = Parts(xtr, ytr, True), Parts(xte, yte, False)
cnt = np.bincount(ytr)
print("counts", cnt)
w = (1.0 / cnt)[ytr]
sampler = WeightedRandomSampler(torch.as_tensor(w), num_samples=len(tr), replacement=True)
dl_tr = DataLoader(tr, batch_size=args.bs, sampler=sampler)
dl_te = DataLoader(te, batch_size=256)

net = Net()
ema = EMA(net, args.decay)
decay_p = [p for p in net.parameters() if p.ndim > 1]
other_p = [p for p in net.parameters() if p.ndim <= 1]
opt = torch.optim.AdamW([{"params": decay_p, "weight_decay": 0.3},
                         {"params": other_p, "weight_decay": 0.0}], lr=4e-3)
n_batches = len(dl_tr)
upd = -(-n_batches // args.accum)
sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=upd * 7)
for ep in range(args.epochs):
    net.train()
    tot = 0.0
    opt.zero_grad()
    for i, (x, y) in enumerate(dl_tr):
        group = min(args.accum, n_batches - (i // args.accum) * args.accum)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bool(args.amp)):
            out = net(x)
        loss = F.cross_entropy(out.float(), y)
        (loss / group).backward()
        tot += loss.item()
        if (i + 1) % args.accum == 0 or i + 1 == n_batches:
            opt.step()
            opt.zero_grad()
            sched.step()
            ema.update(net)
    f_raw, _ = evaluate(net, dl_te)
    f_ema, bal = evaluate(ema.shadow, dl_te)
    print("ep %2d loss %.4f f1 raw %.3f f1 ema %.3f" % (ep, tot / n_batches, f_raw, f_ema))

torch.save({"ema": ema.shadow.state_dict(), "args": vars(args)}, os.path.join(tempfile.mkdtemp(), "ema.pt"))
print("FINAL f1=%.4f balanced_acc=%.4f" % (f_ema, bal))
