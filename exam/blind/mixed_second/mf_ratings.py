# Biased matrix factorisation on a ratings log (user id, item id, stars)
import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import TensorDataset, DataLoader

SEED = 0
N_USERS, N_ITEMS, N_OBS, DIM = 300, 200, 18000, 6


def make_log(seed):
    g = np.random.default_rng(seed)
    pu, qi = g.normal(size=(N_USERS, 3)), g.normal(size=(N_ITEMS, 3))
    bu, bi = g.normal(0, .4, N_USERS), g.normal(0, .6, N_ITEMS)
    pop = g.dirichlet(np.ones(N_ITEMS) * 2)
    u = g.integers(0, N_USERS, N_OBS)
    i = g.choice(N_ITEMS, N_OBS, p=pop)
    r = 3.3 + bu[u] + bi[i] + .55 * (pu[u] * qi[i]).sum(1) + g.normal(0, .3, N_OBS)
    df = pd.DataFrame({"user": [f"u{k:04d}" for k in u], "item": [f"m{k:04d}" for k in i],
                       "stars": r.clip(0.5, 5.5), "ts": np.arange(N_OBS)})
    return df.drop_duplicates(["user", "item"])


log = make_log(SEED)
cut = log.ts.quantile(.85)
train, test = log[log.ts <= cut].copy(), log[log.ts > cut].copy()
test = test[test.user.isin(train.user) & test.item.isin(train.item)]

for col in ("user", "item"):
    train[col + "_idx"], vocab = pd.factorize(train[col])
    test[col + "_idx"], vocab = pd.factorize(test[col])


class MF(nn.Module):
    def __init__(self, n_u, n_i, d, mean):
        super().__init__()
        self.u, self.i = nn.Embedding(n_u, d), nn.Embedding(n_i, d)
        self.bu, self.bi = nn.Embedding(n_u, 1), nn.Embedding(n_i, 1)
        for e in (self.u, self.i):
            nn.init.normal_(e.weight, std=.1)
        for e in (self.bu, self.bi):
            nn.init.zeros_(e.weight)
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32))

    def forward(self, u, i):
        return self.mean + self.bu(u)[:, 0] + self.bi(i)[:, 0] + (self.u(u) * self.i(i)).sum(1)


def tensors(df):
    return (torch.tensor(df.user_idx.to_numpy()), torch.tensor(df.item_idx.to_numpy()),
            torch.tensor(df.stars.to_numpy(), dtype=torch.float32))


torch.manual_seed(SEED)
model = MF(train.user.nunique(), train.item.nunique(), DIM, train.stars.mean())
loader = DataLoader(TensorDataset(*tensors(train)), batch_size=256, shuffle=True)
opt = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=3e-2)
tu, ti, tr = tensors(test)
base = (tr - train.stars.mean()).pow(2).mean().sqrt()
print(f"{len(train)} train / {len(test)} test ratings; always the mean: RMSE {base:.3f}")
for epoch in range(13):
    se, n = 0.0, 0
    for u, i, r in loader:
        loss = ((model(u, i) - r) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        se += loss.item() * len(r)
        n += len(r)
    if epoch % 4 == 0:
        with torch.no_grad():
            rmse = (model(tu, ti) - tr).pow(2).mean().sqrt()
        print(f"epoch {epoch:2d} train RMSE {(se / n) ** .5:.3f} test RMSE {rmse:.3f}")
with torch.no_grad():
    p = model(tu, ti)
print(f"final test RMSE {(p - tr).pow(2).mean().sqrt():.3f} "
      f"corr {np.corrcoef(p.numpy(), tr.numpy())[0, 1]:.3f}")
