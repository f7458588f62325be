import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def get_dls(bs=32):
    X, y = load_breast_cancer(return_X_y=True)
    perm = torch.randperm(len(X)).numpy()
    X, y = X[perm], y[perm]
    sc = StandardScaler().fit(X[:450])
    X = torch.tensor(sc.transform(X), dtype=torch.float32)
    y = torch.tensor(y)
    return DataLoader(TensorDataset(X[:450], y[:450]), bs, shuffle=True), DataLoader(TensorDataset(X[450:], y[450:]), 64)


def lr_find(model, dl, start_lr=1e-5, end_lr=10.0, num_it=80, beta=0.8):
    model.train()
    opt = torch.optim.SGD(model.parameters(), lr=start_lr)
    mult = (end_lr / start_lr) ** (1 / num_it)
    lr, avg, best, it = start_lr, 0.0, math.inf, 0
    lrs, losses = [], []
    while it < num_it:
        for xb, yb in dl:
            opt.param_groups[0]["lr"] = lr
            loss = F.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            it += 1
            avg = beta * avg + (1 - beta) * loss.item()
            smooth = avg / (1 - beta ** it)
            lrs.append(lr)
            losses.append(smooth)
            best = min(best, smooth)
            lr *= mult
            if it >= num_it or smooth > 4 * best:
                break
        if smooth > 4 * best:
            break
    return lrs[losses.index(min(losses))] / 10


def fit(epochs, model, opt, train_dl, valid_dl):
    for epoch in range(epochs):
        model.train()
        train_loss = 0.0
        for xb, yb in train_dl:
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            opt.step()
            opt.zero_grad()
            train_loss += loss.item() / len(train_dl)
        model.eval()
        with torch.no_grad():
            preds = torch.cat([model(xb) for xb, _ in valid_dl])
            targ = torch.cat([yb for _, yb in valid_dl])
        acc = (preds.argmax(1) == targ).float().mean().item()
        print(f"{epoch:<4d}{train_loss:<10.4f}{F.cross_entropy(preds, targ).item():<10.4f}{acc:<8.3f}")


train_dl, valid_dl = get_dls()
model = nn.Sequential(nn.Linear(30, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 2))
lr = lr_find(copy.deepcopy(model), train_dl)
print(f"suggested lr: {lr:.4f}")
fit(10, model, torch.optim.SGD(model.parameters(), lr=lr), train_dl, valid_dl)
