# matrix factorisation recommender, ratings made from hidden tastes
import numpy as np
import pandas as pd
import torch
from sklearn.preprocessing import LabelEncoder
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rs = np.random.RandomState(5)
torch.manual_seed(5)

N_USERS, N_MOVIES, K = 300, 150, 4
user_taste = rs.normal(size=(N_USERS, K))
movie_kind = rs.normal(size=(N_MOVIES, K))
movie_bias = rs.normal(0, 0.5, N_MOVIES)

pop = rs.dirichlet(np.ones(N_MOVIES) * 0.6)
rows = []
for u in range(N_USERS):
    seen = rs.choice(N_MOVIES, size=45, replace=False, p=(pop + 1e-3) / (pop + 1e-3).sum())
    for m in seen:
        r = 3.2 + movie_bias[m] + 0.45 * user_taste[u] @ movie_kind[m] + rs.normal(0, 0.3)
        rows.append((f"user_{u:04d}", f"tt{m * 37 + 1000}", float(np.clip(r, 0.5, 5))))
df = pd.DataFrame(rows, columns=["user", "movie", "rating"]).sample(frac=1, random_state=0)

cut = int(len(df) * 0.97)
train_df, valid_df = df.iloc[:cut].copy(), df.iloc[cut:].copy()

user_enc, movie_enc = LabelEncoder().fit(df.user), LabelEncoder().fit(df.movie)
n_users, n_movies = len(user_enc.classes_), len(movie_enc.classes_)
for part in (train_df, valid_df):
    part["u"] = user_enc.fit_transform(part.user)
    part["m"] = movie_enc.fit_transform(part.movie)


def loader(part, **kw):
    return DataLoader(TensorDataset(torch.tensor(part.u.values), torch.tensor(part.m.values),
                                    torch.tensor(part.rating.values, dtype=torch.float32)), **kw)


train_dl = loader(train_df, batch_size=256, shuffle=True)
valid_dl = loader(valid_df, batch_size=1024)


class MF(nn.Module):
    def __init__(self, n_users, n_movies, dim=8, mean=0.0):
        super().__init__()
        self.u = nn.Embedding(n_users, dim)
        self.m = nn.Embedding(n_movies, dim)
        self.ub = nn.Embedding(n_users, 1)
        self.mb = nn.Embedding(n_movies, 1)
        self.mean = mean
        nn.init.normal_(self.u.weight, std=0.1)
        nn.init.normal_(self.m.weight, std=0.1)
        nn.init.zeros_(self.ub.weight)
        nn.init.zeros_(self.mb.weight)

    def forward(self, u, m):
        dot = (self.u(u) * self.m(m)).sum(-1)
        return dot + self.ub(u).squeeze(-1) + self.mb(m).squeeze(-1) + self.mean


net = MF(n_users, n_movies, mean=float(train_df.rating.mean()))
opt = torch.optim.AdamW(net.parameters(), lr=1e-2, weight_decay=0.05)

base = float(((valid_df.rating - train_df.rating.mean()) ** 2).mean() ** 0.5)
print(f"RMSE of the global mean on valid: {base:.4f}")
for ep in range(12):
    net.train()
    se = 0.0
    for u, m, r in train_dl:
        loss = ((net(u, m) - r) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        se += loss.item() * len(r)
    net.eval()
    with torch.no_grad():
        ve = sum(((net(u, m) - r) ** 2).sum().item() for u, m, r in valid_dl) / len(valid_df)
    print(f"epoch {ep + 1:2d}: train RMSE {(se / len(train_df)) ** 0.5:.4f}  valid RMSE {ve ** 0.5:.4f}")
