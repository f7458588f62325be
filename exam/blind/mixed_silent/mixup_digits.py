"""Digits with mixup, label smoothing and a warm-up + cosine schedule that moves every batch."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

torch.manual_seed(0)
g = torch.Generator().manual_seed(0)

X, y = load_digits(return_X_y=True)
X = torch.tensor(X / 16.0, dtype=torch.float32).view(-1, 1, 8, 8)
y = torch.tensor(y)
tr, te = train_test_split(torch.arange(len(y)).numpy(), test_size=0.25, stratify=y.numpy(), random_state=1)
Xtr, ytr, Xte, yte = X[tr], y[tr], X[te], y[te]

net = nn.Sequential(
    nn.Conv2d(1, 24, 3, padding=1, bias=False), nn.BatchNorm2d(24), nn.ReLU(),
    nn.Conv2d(24, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Dropout(0.5), nn.Linear(32 * 16, 10),
)

EPOCHS, BS, PEAK = 12, 64, 0.1
steps_per_epoch = math.ceil(len(Xtr) / BS)
total = EPOCHS * steps_per_epoch
warm = steps_per_epoch


def factor(step):
    if step < warm:
        return step / warm          # starts at exactly zero
    p = (step - warm) / (total - warm)
    return 0.5 * (1 + math.cos(math.pi * p))


decay, no_decay = [], []
for n, p in net.named_parameters():
    (decay if p.ndim > 1 else no_decay).append(p)
opt = torch.optim.SGD([{"params": decay, "weight_decay": 5e-4}, {"params": no_decay, "weight_decay": 0.0}],
                      lr=PEAK, momentum=0.9, nesterov=True)
sched = torch.optim.lr_scheduler.LambdaLR(opt, factor)
beta = torch.distributions.Beta(0.4, 0.4)


@torch.no_grad()
def test():
    net.eval()
    out = net(Xte)
    return F.cross_entropy(out, yte).item(), (out.argmax(1) == yte).float().mean().item()


print("before training: loss %.3f acc %.3f" % test())
for epoch in range(EPOCHS):
    net.train()
    total_loss = 0.0
    for idx in torch.randperm(len(Xtr), generator=g).split(BS):
        lam = beta.sample().item()
        other = idx[torch.randperm(len(idx), generator=g)]
        xb = lam * Xtr[idx] + (1 - lam) * Xtr[other]
        out = net(xb)
        loss = (lam * F.cross_entropy(out, ytr[idx], label_smoothing=0.1)
                + (1 - lam) * F.cross_entropy(out, ytr[other], label_smoothing=0.1))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()
        total_loss += loss.item() * len(idx)
    vl, va = test()
    print(f"{epoch:02d} lr {sched.get_last_lr()[0]:.4f} train(mixup) {total_loss / len(Xtr):.3f} "
          f"test loss {vl:.3f} acc {va:.4f}")
