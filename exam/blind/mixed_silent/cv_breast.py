#!/usr/bin/env python
"""5-fold cross validation of a small MLP, then a check on a sealed hold-out part."""
import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

SEED = 11
torch.manual_seed(SEED)

X, y = make_classification(n_samples=1400, n_features=60, n_informative=10, n_redundant=10,
                           flip_y=0.2, class_sep=0.8, random_state=SEED)
X_dev, X_hold, y_dev, y_hold = train_test_split(X, y, test_size=800, stratify=y, random_state=SEED)


class MLP(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(d, 96), nn.ReLU(),
            nn.Linear(96, 96), nn.ReLU(),
            nn.Linear(96, 1))

    def forward(self, x):
        return self.body(x).squeeze(-1)


def run_epoch(model, opt, x, y, bs=32):
    model.train()
    order = torch.randperm(len(x))
    for i in range(0, len(x), bs):
        j = order[i:i + bs]
        loss = nn.functional.binary_cross_entropy_with_logits(model(x[j]), y[j])
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


@torch.no_grad()
def auc(model, x, y):
    model.eval()
    return roc_auc_score(y.numpy(), torch.sigmoid(model(x)).numpy())


def tensors(scaler, a, b):
    return (torch.tensor(scaler.transform(a), dtype=torch.float32),
            torch.tensor(b, dtype=torch.float32))


N_EPOCHS = 12
model = MLP(X.shape[1])
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
fold_scores = []
skf = StratifiedKFold(n_splits=5, shuffle=True, random_state=SEED)
for fold, (tr, va) in enumerate(skf.split(X_dev, y_dev)):
    sc = StandardScaler().fit(X_dev[tr])
    x_tr, t_tr = tensors(sc, X_dev[tr], y_dev[tr])
    x_va, t_va = tensors(sc, X_dev[va], y_dev[va])
    for epoch in range(N_EPOCHS):
        last = run_epoch(model, optimizer, x_tr, t_tr)
    fold_scores.append(auc(model, x_va, t_va))
    print(f"fold {fold}: loss {last:.4f}  val AUC {fold_scores[-1]:.4f}")

print(f"CV AUC: {np.mean(fold_scores):.4f} +/- {np.std(fold_scores):.4f}")

# final model on all of the development rows
sc = StandardScaler().fit(X_dev)
x_tr, t_tr = tensors(sc, X_dev, y_dev)
x_ho, t_ho = tensors(sc, X_hold, y_hold)
final = MLP(X.shape[1])
opt = torch.optim.Adam(final.parameters(), lr=2e-3)
for epoch in range(N_EPOCHS):
    run_epoch(final, opt, x_tr, t_tr)
print(f"hold-out AUC: {auc(final, x_ho, t_ho):.4f}")
