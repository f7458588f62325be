"""Monthly churn model: aggregates raw usage events per customer and trains a small MLP."""
import json
import logging
from dataclasses import dataclass, asdict

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
log = logging.getLogger("churn")


@dataclass
class Config:
    n_customers: int = 4000
    valid_share: float = 0.25
    hidden: int = 32
    lr: float = 3e-3
    weight_decay: float = 1e-4
    batch_size: int = 128
    max_epochs: int = 25
    patience: int = 5
    seed: int = 11


def load_tables(cfg):
    rng = np.random.default_rng(cfg.seed)
    ids = np.array([f"C{v:06x}" for v in rng.choice(16 ** 6, cfg.n_customers, replace=False)])
    activity = rng.gamma(2.0, 4.0, cfg.n_customers)
    trend = rng.normal(0, 1, cfg.n_customers)
    support = rng.poisson(1.0, cfg.n_customers)
    score = 1.1 * (support - 1.0) - 0.22 * (activity - 8) - 1.2 * trend - 1.2
    churned = (rng.random(cfg.n_customers) < 1 / (1 + np.exp(-score))).astype(int)
    accounts = pd.DataFrame({
        "customer_id": ids,
        "signup_date": pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 700, cfg.n_customers), "D"),
        "churned": churned,
    }).sort_values("signup_date", ignore_index=True)
    frames = []
    for week in range(4):
        rate = np.clip(activity * (1 + 0.15 * trend * (week - 1.5)), 0.2, None)
        frames.append(pd.DataFrame({
            "customer_id": ids, "week": week,
            "sessions": rng.poisson(rate) + 1,
            "minutes": rng.gamma(3.0, 1.0, cfg.n_customers) * rate,
            "tickets": rng.binomial(support, 0.25),
        }))
    events = pd.concat(frames).sample(frac=1.0, random_state=cfg.seed)
    return accounts, events


def build_features(accounts, events):
    late = events["week"] >= 2
    events = events.assign(
        late_sessions=np.where(late, events["sessions"], 0),
        early_sessions=np.where(late, 0, events["sessions"]),
    )
    feats = events.groupby("customer_id").agg(
        sessions=("sessions", "sum"),
        minutes=("minutes", "mean"),
        tickets=("tickets", "sum"),
        late_sessions=("late_sessions", "sum"),
        early_sessions=("early_sessions", "sum"),
    )
    feats["momentum"] = (feats["late_sessions"] - feats["early_sessions"]) / feats["sessions"]
    feats["log_minutes"] = np.log1p(feats["minutes"])
    labels = accounts.set_index("customer_id")["churned"]
    return feats.to_numpy(np.float32), labels.to_numpy(np.float32), list(feats.columns)


def split(X, y, cfg):
    order = np.random.default_rng(cfg.seed + 1).permutation(len(X))
    n_valid = int(cfg.valid_share * len(X))
    va, tr = order[:n_valid], order[n_valid:]
    scaler = StandardScaler().fit(X[tr])
    return (scaler.transform(X[tr]), y[tr]), (scaler.transform(X[va]), y[va])


class ChurnNet(nn.Module):
    def __init__(self, n_in, hidden):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(n_in, hidden), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1),
        )

    def forward(self, x):
        return self.body(x).squeeze(-1)


def predict(model, X):
    model.eval()
    with torch.no_grad():
        return torch.sigmoid(model(torch.as_tensor(X, dtype=torch.float32))).numpy()


def train(cfg):
    torch.manual_seed(cfg.seed)
    accounts, events = load_tables(cfg)
    X, y, names = build_features(accounts, events)
    log.info("features %s, churn rate %.3f", names, y.mean())
    (Xtr, ytr), (Xva, yva) = split(X, y, cfg)
    loader = DataLoader(TensorDataset(torch.as_tensor(Xtr), torch.as_tensor(ytr)),
                        batch_size=cfg.batch_size, shuffle=True)
    model = ChurnNet(X.shape[1], cfg.hidden)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
    loss_fn = nn.BCEWithLogitsLoss()
    best, best_state, waited = -1.0, None, 0
    for epoch in range(cfg.max_epochs):
        model.train()
        total = 0.0
        for xb, yb in loader:
            opt.zero_grad()
            loss = loss_fn(model(xb), yb)
            loss.backward()
            opt.step()
            total += loss.item() * len(xb)
        auc = roc_auc_score(yva, predict(model, Xva))
        log.info("epoch %d loss %.4f valid auc %.4f", epoch, total / len(Xtr), auc)
        if auc > best:
            best, waited = auc, 0
            best_state = {k: v.clone() for k, v in model.state_dict().items()}
        else:
            waited += 1
            if waited >= cfg.patience:
                break
    model.load_state_dict(best_state)
    p = predict(model, Xva)
    return {"auc": roc_auc_score(yva, p), "pr_auc": average_precision_score(yva, p), "base_rate": float(yva.mean())}


if __name__ == "__main__":
    config = Config()
    metrics = train(config)
    print(json.dumps({"config": asdict(config), "metrics": {k: round(float(v), 4) for k, v in metrics.items()}}))
