"""Two-headed model; each loss is sent back by itself through the shared features."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(13)
np.random.seed(13)


def make(n):
    x = np.random.randn(n, 10).astype(np.float32)
    kind = (x[:, 0] * x[:, 1] > 0).astype(np.int64)
    amount = np.abs(x[:, 2]) + 0.5 * x[:, 3] + 0.05 * np.random.randn(n)
    return x, kind, amount.astype(np.float32)


def batches(arrays, size):
    order = np.random.permutation(len(arrays[0]))
    for s in range(0, len(order), size):
        pick = order[s:s + size]
        yield tuple(torch.from_numpy(a[pick]) for a in arrays)


class Learner:
    def __init__(self):
        self.body = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.kind_head = nn.Linear(64, 2)
        self.amount_head = nn.Linear(64, 1)
        self.modules = nn.ModuleList([self.body, self.kind_head, self.amount_head])
        self.optimizer = torch.optim.Adam(self.modules.parameters(), lr=3e-3)

    def losses(self, x, kind, amount):
        features = self.body(x)
        loss_kind = F.cross_entropy(self.kind_head(features), kind)
        loss_amount = F.smooth_l1_loss(self.amount_head(features).squeeze(1), amount)
        return loss_kind, loss_amount

    def backward(self, loss, last=False):
        loss.backward(retain_graph=not last)

    def learn(self, batch):
        loss_kind, loss_amount = self.losses(*batch)
        self.optimizer.zero_grad()
        self.backward(loss_kind)
        self.backward(loss_amount, last=True)
        self.optimizer.step()
        return loss_kind.item(), loss_amount.item()


train, valid = make(1500), make(400)
learner = Learner()
for epoch in range(15):
    out = np.array([learner.learn(b) for b in batches(train, 50)]).mean(axis=0)
    if epoch in (0, 14):
        print(f"epoch {epoch}: kind {out[0]:.4f} amount {out[1]:.4f}")

with torch.no_grad():
    kind, amount = learner.losses(*(torch.from_numpy(a) for a in valid))
print(f"validation: kind {kind.item():.4f} amount {amount.item():.4f}")
