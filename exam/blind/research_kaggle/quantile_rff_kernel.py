# %% [markdown]
# ## Prediction intervals with random Fourier features and the pinball loss
# Frozen random features (no training of the projection), one linear head per quantile.

# %%
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from sklearn.datasets import make_friedman1
from sklearn.model_selection import KFold
from torch.utils.data import DataLoader, TensorDataset

CSV = Path(__file__).with_name("quantile_rff_data.csv")
QUANTILES = (0.05, 0.5, 0.95)


class CFG:
    seed = 2024
    n_features = 300
    gamma = 0.3
    epochs = 30
    lr = 1e-2
    weight_decay = 0.05
    batch = 64
    accumulate = 2
    folds = 3


torch.manual_seed(CFG.seed)

# %% data on disk
if not CSV.exists():
    X, f = make_friedman1(n_samples=1800, n_features=6, noise=0.0, random_state=CFG.seed)
    rs = np.random.default_rng(CFG.seed)
    df = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    df["target"] = f + rs.standard_normal(len(f)) * (0.5 + 1.5 * X[:, 5])
    df.to_csv(CSV, index=False)
df = pd.read_csv(CSV)
FEATURES = [c for c in df.columns if c != "target"]


# %% pinball loss with its own backward pass
class Pinball(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pred, target, q):
        diff = target.unsqueeze(1) - pred
        ctx.save_for_backward(diff, q)
        return torch.where(diff >= 0, q * diff, (q - 1) * diff).mean()

    @staticmethod
    def backward(ctx, grad_out):
        diff, q = ctx.saved_tensors
        grad = torch.where(diff >= 0, -q, 1 - q).expand_as(diff) / diff.numel()
        return grad_out * grad, None, None


class QuantileRFF(nn.Module):
    def __init__(self, d_in):
        super().__init__()
        g = torch.Generator().manual_seed(CFG.seed)
        self.register_buffer("W", torch.randn(d_in, CFG.n_features, generator=g) * CFG.gamma)
        self.register_buffer("b", torch.rand(CFG.n_features, generator=g) * 2 * np.pi)
        self.head = nn.Linear(CFG.n_features, len(QUANTILES))

    def forward(self, x):
        phi = (2.0 / CFG.n_features) ** 0.5 * torch.cos(x @ self.W + self.b)
        return self.head(phi * 6.0)


# %% cross-validation
q = torch.tensor(QUANTILES)
oof = np.zeros((len(df), len(QUANTILES)), dtype=np.float32)
for fold, (tr, va) in enumerate(KFold(CFG.folds, shuffle=True, random_state=CFG.seed).split(df)):
    mean, std = df.iloc[tr].mean(), df.iloc[tr].std()
    z = ((df - mean) / std).astype("float32")
    x_tr, y_tr = torch.tensor(z.iloc[tr][FEATURES].values), torch.tensor(z.iloc[tr]["target"].values)
    x_va = torch.tensor(z.iloc[va][FEATURES].values)

    model = QuantileRFF(len(FEATURES))
    opt = torch.optim.AdamW(model.parameters(), lr=CFG.lr, weight_decay=CFG.weight_decay)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=CFG.epochs)
    loader = DataLoader(TensorDataset(x_tr, y_tr), batch_size=CFG.batch, shuffle=True)
    for epoch in range(CFG.epochs):
        model.train()
        opt.zero_grad()
        total = 0.0
        for i, (x, y) in enumerate(loader):
            loss = Pinball.apply(model(x), y, q)
            (loss / CFG.accumulate).backward()
            if (i + 1) % CFG.accumulate == 0 or i + 1 == len(loader):
                opt.step()
                opt.zero_grad()
            total += loss.item()
        sched.step()
    print(f"fold {fold}: train pinball {total / len(loader):.4f}")
    model.eval()
    with torch.no_grad():
        oof[va] = model(x_va).numpy() * std["target"] + mean["target"]

# %% scores in the original units
y = df["target"].to_numpy()
cover = ((y >= oof[:, 0]) & (y <= oof[:, 2])).mean()
r2 = 1 - ((y - oof[:, 1]) ** 2).mean() / y.var()
print(f"median R2 {r2:.3f}; 90% interval covers {cover:.3f}, mean width {np.mean(oof[:, 2] - oof[:, 0]):.2f}")
