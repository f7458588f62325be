"""Fraud-like detection, ~1.5 % positives. Sampler for training; average precision on untouched rows."""
import numpy as np
import torch
from sklearn.metrics import average_precision_score, recall_score
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

rng = np.random.default_rng(0)
torch.manual_seed(0)


def transactions(n):
    amount = rng.lognormal(3, 1, n)
    hour = rng.uniform(0, 24, n)
    speed = rng.gamma(2, 1, n)
    km = rng.exponential(10, n)
    trust = rng.beta(5, 2, n)
    night = ((hour < 5) | (hour > 22)).astype(float)
    score = 0.9 * np.log(amount) + 1.4 * night + 0.9 * speed + 0.03 * km - 4 * trust + rng.normal(0, 0.5, n)
    y = (score > 6.6).astype(np.float32)
    x = np.c_[np.log(amount), np.sin(hour / 24 * 2 * np.pi), np.cos(hour / 24 * 2 * np.pi), speed, km, trust]
    return x.astype(np.float32), y


x_train, y_train = transactions(9000)
x_valid, y_valid = transactions(4000)
x_test, y_test = transactions(4000)
print(f"positive rate: train {y_train.mean():.4f} valid {y_valid.mean():.4f} test {y_test.mean():.4f}")
sc = StandardScaler().fit(x_train)
x_train, x_valid, x_test = (torch.tensor(sc.transform(a), dtype=torch.float32) for a in (x_train, x_valid, x_test))

w = np.where(y_train == 1, 0.25 / (y_train == 1).sum(), 0.75 / (y_train == 0).sum())
sampler = WeightedRandomSampler(torch.tensor(w), num_samples=5000, replacement=True)
loader = DataLoader(TensorDataset(x_train, torch.tensor(y_train)), batch_size=128, sampler=sampler)

net = nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 1))
# start from the training mix of the sampler
nn.init.constant_(net[-1].bias, float(np.log(0.25 / 0.75)))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, mode="max", factor=0.5, patience=2)
loss_fn = nn.BCEWithLogitsLoss()


@torch.no_grad()
def scores(x):
    net.eval()
    return torch.sigmoid(net(x).squeeze(1)).numpy()


best, best_state = -1.0, None
print(f"chance level of average precision: {y_valid.mean():.4f}")
for epoch in range(10):
    net.train()
    acc = []
    for xb, yb in loader:
        loss = loss_fn(net(xb).squeeze(1), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        acc.append(loss.item())
    ap = average_precision_score(y_valid, scores(x_valid))
    sched.step(ap)
    if ap > best:
        best, best_state = ap, {k: v.detach().clone() for k, v in net.state_dict().items()}
    print(f"epoch {epoch}: loss {np.mean(acc):.4f} valid AP {ap:.4f} lr {opt.param_groups[0]['lr']:.1e}")

net.load_state_dict(best_state)
p = scores(x_valid)
grid = np.linspace(0.05, 0.95, 19)
f1 = [2 * ((p > t) & (y_valid == 1)).sum() / max(1, (p > t).sum() + (y_valid == 1).sum()) for t in grid]
cut = grid[int(np.argmax(f1))]
pt = scores(x_test)
print(f"test AP {average_precision_score(y_test, pt):.4f}  recall at {cut:.2f}: {recall_score(y_test, pt > cut):.4f}")
