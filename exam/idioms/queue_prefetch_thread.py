import queue
import threading

import torch
import torch.nn as nn
from sklearn.datasets import load_digits

torch.manual_seed(0)
digits = load_digits()
X = torch.tensor(digits.data, dtype=torch.float32) / 16.0
Y = torch.tensor(digits.target)
order = torch.randperm(len(X))
X, Y = X[order], Y[order]
Xtr, Ytr, Xva, Yva = X[:1400], Y[:1400], X[1400:], Y[1400:]


class BackgroundLoader:
    def __init__(self, x, y, bs, depth=4):
        self.x, self.y, self.bs, self.depth = x, y, bs, depth
        self.gen = torch.Generator().manual_seed(1)

    def _fill(self, q):
        perm = torch.randperm(len(self.x), generator=self.gen)
        for chunk in perm.split(self.bs):
            q.put((self.x[chunk], self.y[chunk]))
        q.put(None)

    def __iter__(self):
        q = queue.Queue(maxsize=self.depth)
        t = threading.Thread(target=self._fill, args=(q,), daemon=True)
        t.start()
        while True:
            item = q.get()
            if item is None:
                break
            yield item
        t.join()


net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
loader = BackgroundLoader(Xtr, Ytr, 32)

for epoch in range(12):
    total, n = 0.0, 0
    for xb, yb in loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(xb), yb)
        loss.backward()
        opt.step()
        total += loss.item() * len(xb)
        n += len(xb)
    with torch.no_grad():
        acc = (net(Xva).argmax(1) == Yva).float().mean().item()
    print(f"epoch {epoch:2d} loss {total / n:.4f} val acc {acc:.3f}")
print(f"FINAL acc {acc:.3f}")
