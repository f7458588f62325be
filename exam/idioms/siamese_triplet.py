import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from torch import nn

rng = np.random.default_rng(0)
torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)
X_train, y_train, X_test, y_test = X[:1300], y[:1300], X[1300:], y[1300:]
by_class = [np.flatnonzero(y_train == c) for c in range(10)]


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward_once(self, x):
        return nn.functional.normalize(self.body(x), dim=1)

    def forward(self, a, p, n):
        return self.forward_once(a), self.forward_once(p), self.forward_once(n)


def triplets(n):
    cls = rng.integers(0, 10, n)
    other = (cls + rng.integers(1, 10, n)) % 10
    pick = lambda c: X_train[[rng.choice(by_class[k]) for k in c]]
    return [torch.from_numpy(v) for v in (pick(cls), pick(cls), pick(other))]


def knn_score(model):
    model.eval()
    with torch.no_grad():
        tr, te = model.forward_once(torch.from_numpy(X_train)), model.forward_once(torch.from_numpy(X_test))
    model.train()
    return KNeighborsClassifier(5).fit(tr.numpy(), y_train).score(te.numpy(), y_test)


model = Embedder()
criterion = nn.TripletMarginLoss(margin=0.5)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
print(f"kNN before: {knn_score(model):.3f}")
for step in range(301):
    anchor, positive, negative = model(*triplets(64))
    loss = criterion(anchor, positive, negative)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step} triplet loss {loss.item():.4f}")
print(f"kNN after: {knn_score(model):.3f}")
