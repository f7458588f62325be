# %% [markdown]
# # Store sales: entity embeddings + MLP (PyTorch)

# %%
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 42
DATA = Path(__file__).parent / "input_store_sales"
np.random.seed(SEED)
torch.manual_seed(SEED)


# %% the competition files
def write_files():
    DATA.mkdir(exist_ok=True)
    rng = np.random.default_rng(SEED)
    n_store, n_item, n = 30, 12, 4000
    stores = pd.DataFrame({
        "store_id": rng.permutation(n_store) + 100,
        "region": rng.choice(["north", "south", "east", "west"], n_store),
        "area": rng.uniform(200, 2000, n_store).round(),
        "competitor_km": rng.gamma(2.0, 2.0, n_store).round(2)})
    item_pop = rng.normal(0, 0.6, n_item)
    region_eff = {"north": -0.3, "south": 0.2, "east": 0.0, "west": 0.4}
    df = pd.DataFrame({
        "id": np.arange(n), "store_id": rng.integers(100, 100 + n_store, n),
        "item": rng.integers(0, n_item, n), "week": rng.integers(1, 53, n),
        "promo": rng.integers(0, 2, n), "price": rng.uniform(1, 10, n).round(2)})
    s = stores.set_index("store_id").loc[df.store_id]
    log_sales = (2.5 + item_pop[df["item"]] + s.region.map(region_eff).to_numpy() + 0.5 * np.log(s.area.to_numpy() / 500)
                 + 0.5 * df.promo - 0.15 * df.price + 0.3 * np.sin(2 * np.pi * df.week / 52)
                 + 0.04 * s.competitor_km.to_numpy() + rng.normal(0, 0.15, n))
    df["sales"] = np.exp(log_sales).round(2)
    df.iloc[:3200].to_csv(DATA / "train.csv", index=False)
    df.iloc[3200:].drop(columns="sales").to_csv(DATA / "test.csv", index=False)
    df.iloc[3200:][["id", "sales"]].to_csv(DATA / "solution.csv", index=False)
    stores.to_csv(DATA / "stores.csv", index=False)


write_files()

# %% load and join
train = pd.read_csv(DATA / "train.csv")
test = pd.read_csv(DATA / "test.csv")
stores = pd.read_csv(DATA / "stores.csv")
y = np.log1p(train.pop("sales")).to_numpy(np.float32)

train = stores.merge(train, on="store_id")
test = stores.merge(test, on="store_id")

# %% features
CATS = ["store_id", "region", "item"]
NUMS = ["area", "competitor_km", "promo", "price", "wk_sin", "wk_cos"]
for d in (train, test):
    d["wk_sin"] = np.sin(2 * np.pi * d.week / 52)
    d["wk_cos"] = np.cos(2 * np.pi * d.week / 52)
    d["area"] = np.log(d.area)
vocab = {c: {v: i + 1 for i, v in enumerate(sorted(train[c].unique()))} for c in CATS}
mean, std = train[NUMS].mean(), train[NUMS].std()


def to_tensors(d):
    cat = np.stack([d[c].map(vocab[c]).fillna(0).astype(int) for c in CATS], axis=1)
    num = ((d[NUMS] - mean) / std).to_numpy(np.float32)
    return torch.from_numpy(cat), torch.from_numpy(num)


class EmbMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.embs = nn.ModuleList(nn.Embedding(len(vocab[c]) + 1, 6) for c in CATS)
        self.net = nn.Sequential(
            nn.Linear(6 * len(CATS) + len(NUMS), 64), nn.ReLU(), nn.Dropout(0.05),
            nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, cat, num):
        e = [emb(cat[:, i]) for i, emb in enumerate(self.embs)]
        return self.net(torch.cat(e + [num], dim=1)).squeeze(1)


# %% train
y_mean = float(y.mean())
dl = DataLoader(TensorDataset(*to_tensors(train), torch.from_numpy(y - y_mean)), batch_size=64, shuffle=True)
model = EmbMLP()
EPOCHS = 25
opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=6e-3, epochs=EPOCHS, steps_per_epoch=len(dl))
for ep in range(EPOCHS):
    model.train()
    losses = []
    for cat, num, t in dl:
        loss = nn.functional.mse_loss(model(cat, num), t)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        losses.append(loss.item())
    if ep % 5 == 4:
        print(f"epoch {ep + 1} train mse {np.mean(losses):.4f}")

# %% submission and score
model.eval()
with torch.no_grad():
    pred = np.expm1(model(*to_tensors(test)).numpy() + y_mean).clip(min=0)
sub = pd.DataFrame({"id": test["id"], "pred": pred})
sub.to_csv(DATA / "submission.csv", index=False)
scored = pd.read_csv(DATA / "solution.csv").merge(sub, on="id")
rmsle = np.sqrt(np.mean((np.log1p(scored.sales) - np.log1p(scored.pred)) ** 2))
base = np.log1p(scored.sales).std()
print(f"private LB rmsle {rmsle:.4f} (constant prediction {base:.4f})")
