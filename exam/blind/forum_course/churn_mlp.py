# my net does not learn, test acc is no better than flipping a coin
# tried lr 1e-2 ... 1e-5, more layers, dropout, nothing helps
import argparse
import random

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

p = argparse.ArgumentParser()
p.add_argument("--epochs", type=int, default=25)
p.add_argument("--lr", type=float, default=1e-3)
p.add_argument("--bs", type=int, default=64)
p.add_argument("--seed", type=int, default=7)
args = p.parse_args()

random.seed(args.seed)
np.random.seed(args.seed)
torch.manual_seed(args.seed)


def load_table(n=5000):
    # stand-in for the company csv, same columns
    rng = np.random.default_rng(3)
    tenure = rng.gamma(2.0, 14.0, n)
    monthly = rng.normal(65, 28, n).clip(18, 130)
    contract = rng.choice(["month", "one_year", "two_year"], n, p=[0.55, 0.25, 0.20])
    internet = rng.choice(["dsl", "fiber", "no"], n, p=[0.35, 0.45, 0.20])
    tickets = rng.poisson(1.3, n)
    total = tenure * monthly * rng.normal(1.0, 0.05, n)
    z = (1.6 * (contract == "month") - 1.3 * (contract == "two_year")
         + 0.9 * (internet == "fiber") - 0.055 * tenure
         + 0.018 * (monthly - 65) + 0.75 * tickets - 0.6)
    churn = (rng.uniform(size=n) < 1 / (1 + np.exp(-1.8 * z))).astype(int)
    df = pd.DataFrame({
        "customer_id": np.arange(10_000, 10_000 + n), "tenure": tenure.round(0),
        "monthly": monthly.round(2), "total": total.round(2), "contract": contract,
        "internet": internet, "tickets": tickets, "churn": churn,
    })
    df.loc[rng.choice(n, 260, replace=False), "total"] = np.nan
    df.loc[rng.choice(n, 90, replace=False), "tickets"] = np.nan
    return df


def prepare(df):
    df = df.copy()
    labels = df.pop("churn").values
    df = df.drop(columns=["customer_id"])
    df = df.dropna()
    labels = labels[: len(df)]      # sizes have to match or train_test_split complains
    df["total"] = np.log1p(df["total"])
    df = pd.get_dummies(df, columns=["contract", "internet"])
    print("columns:", list(df.columns))
    return df.values.astype("float32"), labels.astype("float32")


class ChurnNet(nn.Module):
    def __init__(self, n_in, hid=64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(n_in, hid), nn.BatchNorm1d(hid), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(hid, hid // 2), nn.ReLU(),
        )
        self.out = nn.Linear(hid // 2, 1)

    def forward(self, x):
        return self.out(self.body(x)).squeeze(1)


def run_eval(net, dl):
    net.eval()
    ps, ys = [], []
    with torch.no_grad():
        for xb, yb in dl:
            ps.append(torch.sigmoid(net(xb)))
            ys.append(yb)
    ps, ys = torch.cat(ps).numpy(), torch.cat(ys).numpy()
    return accuracy_score(ys, ps > 0.5), roc_auc_score(ys, ps)


X, y = prepare(load_table())
X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.2, stratify=y, random_state=args.seed)
sc = StandardScaler().fit(X_tr)
X_tr, X_te = sc.transform(X_tr), sc.transform(X_te)
print("train", X_tr.shape, "test", X_te.shape, "churn rate %.3f" % y.mean())

train_dl = DataLoader(TensorDataset(torch.from_numpy(X_tr), torch.from_numpy(y_tr)),
                      batch_size=args.bs, shuffle=True)
test_dl = DataLoader(TensorDataset(torch.from_numpy(X_te), torch.from_numpy(y_te)), batch_size=256)

net = ChurnNet(X_tr.shape[1])
crit = nn.BCEWithLogitsLoss()
opt = torch.optim.Adam(net.parameters(), lr=args.lr, weight_decay=1e-5)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=4)

for ep in range(args.epochs):
    net.train()
    tot = 0.0
    for xb, yb in train_dl:
        opt.zero_grad()
        loss = crit(net(xb), yb)
        loss.backward()
        opt.step()
        tot += loss.item() * len(xb)
    tot /= len(X_tr)
    sched.step(tot)
    if (ep + 1) % 5 == 0:
        acc, auc = run_eval(net, test_dl)
        print(f"ep {ep+1:3d} loss {tot:.4f} test acc {acc:.4f} auc {auc:.4f}")

acc, auc = run_eval(net, test_dl)
print(f"FINAL acc={acc:.4f} auc={auc:.4f}")
