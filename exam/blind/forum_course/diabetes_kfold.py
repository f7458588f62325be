# kfold regression w/ pytorch, ensembling folds. works, just want a code review
import argparse
import logging
import sys

import numpy as np
import torch
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
log = logging.getLogger("kfold")

parser = argparse.ArgumentParser()
parser.add_argument("--folds", type=int, default=5)
parser.add_argument("--max-epochs", type=int, default=200)
parser.add_argument("--patience", type=int, default=25)
parser.add_argument("--wd", type=float, default=2.0)
parser.add_argument("--lr", type=float, default=3e-3)
A = parser.parse_args()
RS = 0


class Reg(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.skip = nn.Linear(d, 1)
        self.deep = nn.Sequential(nn.Linear(d, 32), nn.SiLU(), nn.Dropout(0.2), nn.Linear(32, 1))
        nn.init.zeros_(self.deep[-1].weight)
        nn.init.zeros_(self.deep[-1].bias)

    def forward(self, x):
        return (self.skip(x) + self.deep(x))[:, 0]


def to_t(a):
    return torch.as_tensor(np.asarray(a), dtype=torch.float32)


def train_one_fold(X, y, tr, va, fold):
    torch.manual_seed(RS + fold)
    xs = StandardScaler().fit(X[tr])
    ys = StandardScaler().fit(y[tr, None])
    xt, yt = to_t(xs.transform(X[tr])), to_t(ys.transform(y[tr, None])[:, 0])
    xv, yv = to_t(xs.transform(X[va])), to_t(ys.transform(y[va, None])[:, 0])
    net = Reg(X.shape[1])
    opt = torch.optim.AdamW(net.parameters(), lr=A.lr, weight_decay=A.wd)
    best, best_state, bad = float("inf"), None, 0
    for ep in range(A.max_epochs):
        net.train()
        # drops the tail of each permutation, it is another one every epoch
        for idx in torch.randperm(len(xt))[: len(xt) // 32 * 32].view(-1, 32):
            opt.zero_grad()
            loss = nn.functional.smooth_l1_loss(net(xt[idx]), yt[idx])
            loss.backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            v = nn.functional.mse_loss(net(xv), yv).item()
        if v < best - 1e-4:
            best, bad = v, 0
            best_state = {k: t.clone() for k, t in net.state_dict().items()}
        else:
            bad += 1
            if bad >= A.patience:
                break
    net.load_state_dict(best_state)
    net.eval()

    def predict(Z):
        with torch.no_grad():
            out = net(to_t(xs.transform(Z))).numpy()
        return ys.inverse_transform(out[:, None])[:, 0]

    log.info("fold %d stopped at epoch %3d best val mse %.4f  R2 %.3f", fold, ep, best, r2_score(y[va], predict(X[va])))
    return predict


raw = load_diabetes()
X, y = raw.data, raw.target.astype(float)
X_dev, X_test, y_dev, y_test = train_test_split(X, y, test_size=0.2, random_state=3)

oof = np.zeros_like(y_dev)
models = []
for k, (tr, va) in enumerate(KFold(A.folds, shuffle=True, random_state=RS).split(X_dev)):
    f = train_one_fold(X_dev, y_dev, tr, va, k)
    oof[va] = f(X_dev[va])
    models.append(f)

ens = np.mean([f(X_test) for f in models], axis=0)
ridge = Ridge(alpha=0.05).fit(X_dev, y_dev)
mean_mae = np.abs(y_test - y_dev.mean()).mean()
log.info("baseline: mean MAE %.2f  ridge R2 %.3f", mean_mae, r2_score(y_test, ridge.predict(X_test)))
log.info("OOF R2 %.4f", r2_score(y_dev, oof))
log.info("FINAL test_r2=%.4f test_mae=%.2f", r2_score(y_test, ens), np.abs(y_test - ens).mean())
