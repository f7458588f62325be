"""Digits with a small conv net and an exponential moving average of the weights."""
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 0


class Block(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn = nn.BatchNorm2d(cout)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(Block(1, 16), Block(16, 32, 2), Block(32, 48, 2))
        self.head = nn.Linear(48, 10)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


class EMA:
    def __init__(self, model, decay):
        self.model = copy.deepcopy(model).eval()
        self.decay = decay
        self.n = 0
        for p in self.model.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        self.n += 1
        d = min(self.decay, (1 + self.n) / (10 + self.n))
        for avg, p in zip(self.model.parameters(), model.parameters()):
            avg.lerp_(p, 1 - d)


def shift(x):
    dx, dy = torch.randint(-1, 2, (2,)).tolist()
    return torch.roll(x, (dy, dx), (2, 3))


def accuracy(model, x, y):
    was = model.training
    model.eval()
    with torch.no_grad():
        acc = (model(x).argmax(1) == y).float().mean().item()
    model.train(was)
    return acc


def main():
    torch.manual_seed(SEED)
    x, y = load_digits(return_X_y=True)
    x = torch.tensor(x, dtype=torch.float32).view(-1, 1, 8, 8) / 16
    y = torch.tensor(y)
    xtr, xte, ytr, yte = train_test_split(x, y, test_size=.3, random_state=SEED, stratify=y)
    net = Net()
    ema = EMA(net, .99)
    opt = torch.optim.SGD(net.parameters(), .1, momentum=.9, nesterov=True, weight_decay=5e-4)
    epochs, bs = 12, 64
    per = len(xtr) // bs
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: 1 - s / (epochs * per))
    for ep in range(epochs):
        order = torch.randperm(len(xtr))
        tot = 0.
        for b in range(per):
            idx = order[b * bs:(b + 1) * bs]
            loss = F.cross_entropy(net(shift(xtr[idx])), ytr[idx])
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            sched.step()
            ema.update(net)
            tot += loss.item()
        print(f"epoch {ep + 1:2d} loss {tot / per:.3f} test acc (ema) {accuracy(ema.model, xte, yte):.3f}")
    torch.save(ema.model.state_dict(), "/tmp/ema_convnet.pt")
    print(f"saved averaged model, test acc {accuracy(ema.model, xte, yte):.3f}")


main()
