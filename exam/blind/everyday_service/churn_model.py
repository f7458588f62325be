"""Churn propensity model (weekly job).

usage: python churn_model.py --epochs 25 --lr 3e-3
"""
import argparse
import os
import tempfile

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def export_tables(folder, n=3000, seed=11):
    """stand-in for the nightly dump of the warehouse and the CRM"""
    rng = np.random.default_rng(seed)
    ids = np.arange(1, n + 1)
    usage = pd.DataFrame({
        "customer_id": ids,
        "tenure_months": rng.integers(1, 72, n),
        "monthly_fee": rng.normal(55, 18, n).clip(10, None).round(2),
        "calls_to_support": rng.poisson(1.6, n),
        "gb_used": rng.gamma(2.0, 9.0, n).round(1),
        "late_payments": rng.poisson(0.7, n),
        "contract": rng.choice(["monthly", "yearly", "two_years"], n, p=[0.5, 0.3, 0.2]),
    })
    score = (-0.05 * usage.tenure_months + 0.03 * usage.monthly_fee + 0.7 * usage.calls_to_support
             + 0.8 * usage.late_payments - 0.02 * usage.gb_used
             + usage.contract.map({"monthly": 1.2, "yearly": -0.4, "two_years": -1.5}))
    score = score - score.median()
    churned = (rng.random(n) < 1 / (1 + np.exp(-1.6 * score))).astype(int)
    labels = pd.DataFrame({"customer_id": ids, "churned": churned})
    usage.sample(frac=1.0, random_state=1).to_csv(os.path.join(folder, "usage.csv"), index=False)
    labels.sample(frac=1.0, random_state=2).to_csv(os.path.join(folder, "crm_labels.csv"), index=False)


def load(folder):
    usage = pd.read_csv(os.path.join(folder, "usage.csv"))
    labels = pd.read_csv(os.path.join(folder, "crm_labels.csv"), dtype={"customer_id": str, "churned": int})

    usage = usage.drop_duplicates("customer_id").sort_values("customer_id")
    labels = labels.drop_duplicates("customer_id").sort_values("customer_id")
    assert len(usage) == len(labels)

    y = labels["churned"].to_numpy()
    X = pd.get_dummies(usage.drop(columns="customer_id"), columns=["contract"]).astype("float32")
    return X, y


class ChurnNet(nn.Module):
    def __init__(self, n_in, width, p):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_in, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(p),
            nn.Linear(width, width // 2), nn.ReLU(), nn.Linear(width // 2, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


def run_epoch(model, loader, loss_fn, optimizer):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
    return total / len(loader.dataset)


@torch.no_grad()
def predict(model, X):
    model.eval()
    return torch.sigmoid(model(X)).numpy()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=25)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--batch-size", type=int, default=128)
    ap.add_argument("--width", type=int, default=64)
    ap.add_argument("--dropout", type=float, default=0.1)
    ap.add_argument("--seed", type=int, default=3)
    args = ap.parse_args()
    torch.manual_seed(args.seed)

    with tempfile.TemporaryDirectory() as folder:
        export_tables(folder)
        X, y = load(folder)
    print("rows", len(X), "columns", X.shape[1], "churn rate %.3f" % y.mean())

    X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.25, stratify=y, random_state=args.seed)
    scaler = StandardScaler().fit(X_tr)
    as_tensor = lambda a: torch.tensor(scaler.transform(a), dtype=torch.float32)
    train_set = TensorDataset(as_tensor(X_tr), torch.tensor(y_tr, dtype=torch.float32))
    loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)

    model = ChurnNet(X.shape[1], args.width, args.dropout)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-3)
    loss_fn = nn.BCEWithLogitsLoss()
    for epoch in range(args.epochs):
        loss = run_epoch(model, loader, loss_fn, optimizer)
        if epoch % 5 == 4:
            auc = roc_auc_score(y_te, predict(model, as_tensor(X_te)))
            print(f"epoch {epoch + 1:3d} train loss {loss:.4f} valid auc {auc:.4f}")
    print("final auc %.4f" % roc_auc_score(y_te, predict(model, as_tensor(X_te))))


if __name__ == "__main__":
    main()
