"""Next-day demand per store: tabular network on calendar, promotion and sales-history features."""
import argparse
import json
import logging

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
log = logging.getLogger("demand")

LAGS = (1, 7, 14)
HISTORY = [f"lag_{k}" for k in LAGS] + ["mean_7"]
CALENDAR = ["promo", "dow_sin", "dow_cos", "is_weekend"]


def load_sales(n_stores=40, n_days=220, seed=3):
    rng = np.random.default_rng(seed)
    dates = pd.date_range("2023-01-01", periods=n_days, freq="D")
    rows = []
    for store in range(n_stores):
        base = rng.uniform(40, 260)
        weekend = rng.uniform(0.9, 1.6)
        uplift = rng.uniform(1.15, 1.45)
        level = 0.0
        for d in dates:
            level = 0.92 * level + rng.normal(0, 0.09)
            promo = int(rng.random() < 0.12)
            mu = base * np.exp(level) * (weekend if d.dayofweek >= 5 else 1.0) * (uplift if promo else 1.0)
            rows.append((d, store, promo, float(rng.poisson(mu))))
    df = pd.DataFrame(rows, columns=["date", "store_id", "promo", "sales"])
    return df.sort_values(["date", "store_id"], ignore_index=True)


def add_calendar(df):
    dow = df["date"].dt.dayofweek
    df["dow_sin"] = np.sin(2 * np.pi * dow / 7)
    df["dow_cos"] = np.cos(2 * np.pi * dow / 7)
    df["is_weekend"] = (dow >= 5).astype(int)
    return df


def add_history(df):
    for k in LAGS:
        df[f"lag_{k}"] = df["sales"].shift(k)
    df["mean_7"] = df.groupby("store_id")["lag_1"].transform(lambda s: s.rolling(7).mean())
    return df


def make_frames(holdout_days=28):
    df = add_history(add_calendar(load_sales()))
    df = df.dropna(subset=HISTORY).reset_index(drop=True)
    cutoff = df["date"].max() - pd.Timedelta(days=holdout_days)
    train, test = df[df["date"] <= cutoff], df[df["date"] > cutoff]
    log.info("train rows %d, holdout rows %d, cutoff %s", len(train), len(test), cutoff.date())
    return train, test


class Preprocessor:
    """Log-scales the history columns and standardises everything with train statistics."""

    def fit(self, df):
        x = self._raw(df)
        self.mean, self.std = x.mean(0), x.std(0) + 1e-6
        y = np.log1p(df["sales"].to_numpy())
        self.y_mean, self.y_std = y.mean(), y.std()
        return self

    def _raw(self, df):
        return np.hstack([np.log1p(df[HISTORY].to_numpy(float)), df[CALENDAR].to_numpy(float)])

    def inputs(self, df):
        return torch.tensor((self._raw(df) - self.mean) / self.std, dtype=torch.float32)

    def target(self, df):
        return torch.tensor((np.log1p(df["sales"].to_numpy()) - self.y_mean) / self.y_std, dtype=torch.float32)

    def to_units(self, z):
        return np.expm1(z * self.y_std + self.y_mean)


class DemandNet(nn.Module):
    def __init__(self, n_in, width=48):
        super().__init__()
        self.inp = nn.Linear(n_in, width)
        self.mid = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = F.silu(self.inp(x))
        h = h + F.silu(self.mid(h))
        return self.out(h).squeeze(-1)


def fit(model, x, y, epochs, lr, batch=256):
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=epochs)
    for epoch in range(epochs):
        perm = torch.randperm(len(x))
        running = 0.0
        for i in range(0, len(x), batch):
            idx = perm[i:i + batch]
            loss = F.smooth_l1_loss(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            running += loss.item() * len(idx)
        sched.step()
        if epoch % 5 == 0:
            log.info("epoch %02d loss %.4f", epoch, running / len(x))


@torch.no_grad()
def evaluate(model, prep, df):
    pred = prep.to_units(model(prep.inputs(df)).numpy())
    actual = df["sales"].to_numpy()
    wape = np.abs(pred - actual).sum() / actual.sum()
    return {"mae": float(np.abs(pred - actual).mean()), "wape": float(wape)}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=20)
    ap.add_argument("--lr", type=float, default=3e-3)
    args = ap.parse_args()
    torch.manual_seed(0)
    train_df, test_df = make_frames()
    prep = Preprocessor().fit(train_df)
    model = DemandNet(len(HISTORY) + len(CALENDAR))
    fit(model, prep.inputs(train_df), prep.target(train_df), args.epochs, args.lr)
    report = {"train": evaluate(model, prep, train_df), "holdout": evaluate(model, prep, test_df)}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
