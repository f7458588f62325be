"""Batches made once as a list of tuples, shuffled in place with random.shuffle."""

import random

import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer

random.seed(5)
torch.manual_seed(5)
data = load_breast_cancer()
X = torch.tensor(data.data, dtype=torch.float32)
y = torch.tensor(data.target)
order = torch.randperm(len(X))
train_idx, test_idx = order[:450], order[450:]
mean, std = X[train_idx].mean(0), X[train_idx].std(0)
X = (X - mean) / std
batches = [(X[idx], y[idx]) for idx in train_idx.split(25)]


class LogisticRegression(torch.nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = torch.nn.Linear(n_in, n_out)

    def forward(self, x):
        return self.linear(x)


model = LogisticRegression(30, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.05, weight_decay=1e-4)
for epoch in range(20):
    random.shuffle(batches)
    for x, t in batches:
        opt.zero_grad()
        loss = F.cross_entropy(model(x), t)
        loss.backward()
        opt.step()
with torch.no_grad():
    print("loss", loss.item(), "accuracy", (model(X[test_idx]).argmax(1) == y[test_idx]).float().mean().item())
