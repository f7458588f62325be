# verdict: learns
# finds: nothing
# SMOTE by hand, of the training rows alone.
import numpy as np, torch
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0); rng = np.random.default_rng(0)
n, d = 3000, 12
y = (rng.uniform(size=n) < 0.08).astype("int64")
x = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) * 0.6 + 50 + y[:, None] * rng.normal(size=d)
def smote(x, y, k=5):
    few = x[y == 1]; d = ((few[:, None] - few[None]) ** 2).sum(-1); np.fill_diagonal(d, np.inf); near = d.argsort(1)[:, :k]
    n = (y == 0).sum() - len(few); i = rng.integers(0, len(few), n); j = near[i, rng.integers(0, k, n)]
    made = few[i] + rng.uniform(size=(n, 1)) * (few[j] - few[i])
    return np.concatenate([x, made]), np.concatenate([y, np.ones(n, y.dtype)])
x_tr, x_te, y_tr, y_te = train_test_split(x, y, test_size=0.2, random_state=0, stratify=y)
x_tr, y_tr = smote(x_tr, y_tr)
scale = StandardScaler().fit(x_tr)
x_tr, x_te = (torch.tensor(scale.transform(v), dtype=torch.float32) for v in (x_tr, x_te)); y_tr, y_te = torch.tensor(y_tr), torch.tensor(y_te)
net = nn.Sequential(nn.Linear(d, 64), nn.ReLU(), nn.Linear(64, 2)); opt = torch.optim.Adam(net.parameters(), 3e-3)
for epoch in range(8):
    net.train()
    for a, b in DataLoader(TensorDataset(x_tr, y_tr), 64, shuffle=True):
        opt.zero_grad(); loss = nn.functional.cross_entropy(net(a), b); loss.backward(); opt.step()
    net.eval(); right = 0
    with torch.no_grad():
        for a, b in DataLoader(TensorDataset(x_te, y_te), 128): right += (net(a).argmax(1) == b).sum().item()
    print(epoch, "accuracy", right / len(y_te))
