"""Kaggle-style digit recogniser: warm-up + cosine, label smoothing, EMA weights for the submission."""
import math
import os
import random

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedShuffleSplit
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, Dataset

CFG = dict(seed=42, epochs=12, bs=64, lr=4e-3, wd=5e-3, warmup=0.1, smoothing=0.1, ema=0.98)


def seed_everything(seed):
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)


class Digits(Dataset):
    def __init__(self, images, target, train):
        self.images = images.astype(np.float32)
        self.target = target
        self.train = train

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        img = self.images[i] / 16.0
        if self.train and random.random() < 0.7:
            img = np.roll(img, random.randint(-1, 1), axis=1)
        return torch.from_numpy(np.ascontiguousarray(img[None])), int(self.target[i])


def conv(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.SiLU())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = conv(1, 16)
        self.block = nn.Sequential(conv(16, 32), nn.MaxPool2d(2), conv(32, 32))
        self.fc = nn.Linear(32 * 16, 10)
        nn.init.zeros_(self.fc.weight)
        nn.init.zeros_(self.fc.bias)

    def forward(self, x):
        return self.fc(self.block(self.stem(x)).flatten(1))


def param_groups(model, wd):
    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    return [{"params": decay, "weight_decay": wd}, {"params": rest, "weight_decay": 0.0}]


def warmup_cosine(step, total, warm):
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, total - warm)))


def train_one_epoch(model, ema, loader, opt, sched, loss_fn):
    model.train()
    seen, total = 0, 0.0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        loss.backward()
        opt.step()
        for p in model.parameters():
            p.grad = None
        sched.step()
        ema.update_parameters(model)
        total += loss.item() * len(y)
        seen += len(y)
    return total / seen


@torch.no_grad()
def valid_one_epoch(model, loader):
    model.eval()
    preds, gold = [], []
    for x, y in loader:
        # flip-free test time augmentation: average over the three shifts
        p = sum(model(torch.roll(x, s, dims=-1)).softmax(-1) for s in (-1, 0, 1)) / 3
        preds.append(p.argmax(-1))
        gold.append(y)
    return (torch.cat(preds) == torch.cat(gold)).float().mean().item()


seed_everything(CFG["seed"])
data = load_digits()
tr, va = next(StratifiedShuffleSplit(1, test_size=0.25, random_state=CFG["seed"]).split(data.images, data.target))
train_loader = DataLoader(Digits(data.images[tr], data.target[tr], True), CFG["bs"], shuffle=True, drop_last=True)
valid_loader = DataLoader(Digits(data.images[va], data.target[va], False), 128)

model = Net()
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(CFG["ema"]), use_buffers=True)
opt = torch.optim.AdamW(param_groups(model, CFG["wd"]), lr=CFG["lr"])
steps = CFG["epochs"] * len(train_loader)
sched = LambdaLR(opt, lambda s: warmup_cosine(s, steps, int(CFG["warmup"] * steps)))
loss_fn = nn.CrossEntropyLoss(label_smoothing=CFG["smoothing"])

for epoch in range(1, CFG["epochs"] + 1):
    loss = train_one_epoch(model, ema, train_loader, opt, sched, loss_fn)
    if epoch % 3 == 0:
        print(f"Epoch {epoch} loss {loss:.4f} raw {valid_one_epoch(model, valid_loader):.4f} "
              f"ema {valid_one_epoch(ema, valid_loader):.4f}")
print("CV accuracy (ema): %.4f" % valid_one_epoch(ema, valid_loader))
