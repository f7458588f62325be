import torch
import torch.nn as nn
from rich.progress import track

torch.manual_seed(0)

N_USERS, N_ITEMS, K = 120, 80, 4

# user and item ids in the ratings table count from 1
U, V = torch.randn(N_USERS, K) * 0.7, torch.randn(N_ITEMS, K) * 0.7
user_ids = torch.randint(1, N_USERS + 1, (6000,))
item_ids = torch.randint(1, N_ITEMS + 1, (6000,))
ratings = 3.0 + (U[user_ids - 1] * V[item_ids - 1]).sum(1) + 0.1 * torch.randn(6000)

n_train = 5000
train = torch.utils.data.TensorDataset(user_ids[:n_train], item_ids[:n_train], ratings[:n_train])
loader = torch.utils.data.DataLoader(train, batch_size=128, shuffle=True)


class MatrixFactorization(nn.Module):
    def __init__(self, n_users, n_items, dim):
        super().__init__()
        self.user_emb = nn.Embedding(n_users, dim)
        self.item_emb = nn.Embedding(n_items, dim)
        self.user_bias = nn.Embedding(n_users, 1)
        self.item_bias = nn.Embedding(n_items, 1)
        self.mean = nn.Parameter(torch.tensor(ratings[:n_train].mean().item()))
        nn.init.normal_(self.user_emb.weight, std=0.1)
        nn.init.normal_(self.item_emb.weight, std=0.1)
        nn.init.zeros_(self.user_bias.weight)
        nn.init.zeros_(self.item_bias.weight)

    def forward(self, u, i):
        dot = (self.user_emb(u) * self.item_emb(i)).sum(1)
        return self.mean + dot + self.user_bias(u).squeeze(1) + self.item_bias(i).squeeze(1)


model = MatrixFactorization(N_USERS + 1, N_ITEMS + 1, K)
opt = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=1e-5)

log = []
for epoch in track(range(20), description="Factorizing"):
    total = 0.0
    for u, i, r in loader:
        loss = nn.functional.mse_loss(model(u, i), r)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        total += loss.item() * len(r)
    log.append(total / n_train)

with torch.no_grad():
    rmse = (model(user_ids[n_train:], item_ids[n_train:]) - ratings[n_train:]).pow(2).mean().sqrt().item()
print(f"train mse {log[0]:.4f} -> {log[-1]:.4f}, held-out rmse {rmse:.4f} (std of ratings {ratings.std():.3f})")
