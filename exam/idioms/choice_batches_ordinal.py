import numpy as np
import torch
from torch import nn

np.random.seed(16)
torch.manual_seed(16)
LEVELS = 5
X = np.random.randn(1500, 8).astype("float32")
latent = X @ np.array([1.5, -1, 0.8, 0, 0, 0.5, 0, 0]) + 0.6 * X[:, 3] ** 2 + 0.3 * np.random.randn(1500)
Y = np.digitize(latent, np.quantile(latent, [0.2, 0.4, 0.6, 0.8]))
X_train, X_val, Y_train, Y_val = X[:1200], X[1200:], Y[:1200], Y[1200:]


class Ordinal(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
        self.first = nn.Parameter(torch.tensor(-1.0))
        self.gaps = nn.Parameter(torch.zeros(LEVELS - 2))

    def forward(self, x):
        cuts = torch.cat([self.first[None], self.first + nn.functional.softplus(self.gaps).cumsum(0)])
        return self.score(x) - cuts  # (N, LEVELS - 1)


def cumulative(y):
    return (torch.as_tensor(y)[:, None] > torch.arange(LEVELS - 1)).float()


model = Ordinal()
norms = {}


def watch(name):
    def hook(grad):
        norms[name] = grad.norm().item()

    return hook


for name, param in model.named_parameters():
    param.register_hook(watch(name))

optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.BCEWithLogitsLoss()
losses = []
for it in range(600):
    idx = np.random.choice(len(X_train), size=64, replace=False)
    xb = torch.from_numpy(X_train[idx])
    yb = cumulative(Y_train[idx])
    optimizer.zero_grad()
    loss = criterion(model(xb), yb)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if (it + 1) % 100 == 0:
        with torch.no_grad():
            level = (model(torch.from_numpy(X_val)) > 0).sum(1).numpy()
        mae = np.abs(level - Y_val).mean()
        top = max(norms, key=norms.get)
        print(f"iter {it + 1} loss {np.mean(losses[-100:]):.4f} val MAE {mae:.3f} largest grad {top} {norms[top]:.3f}")
print(f"FINAL loss {np.mean(losses[-100:]):.4f} val MAE {mae:.3f}")
