# Breast cancer, 5-fold cross validation by hand, no sklearn in the loop (only the data)
import copy

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_breast_cancer

torch.manual_seed(1234)
np.random.seed(1234)

raw = load_breast_cancer()
X_all = raw.data.astype(np.float64)
y_all = (raw.target == 0).astype(np.int64)     # 1 = malignant
print("rows %d, malignant share %.3f" % (len(y_all), y_all.mean()))

K = 5
folds = np.empty(len(y_all), dtype=int)
for c in (0, 1):
    where = np.flatnonzero(y_all == c)
    folds[np.random.permutation(where)] = np.arange(len(where)) % K


def stats(pred, gold):
    tp = ((pred == 1) & (gold == 1)).sum()
    fp = ((pred == 1) & (gold == 0)).sum()
    fn = ((pred == 0) & (gold == 1)).sum()
    precision, recall = tp / max(tp + fp, 1), tp / max(tp + fn, 1)
    return (pred == gold).mean(), 2 * precision * recall / max(precision + recall, 1e-9)


def new_model():
    return nn.Sequential(
        nn.Linear(30, 32), nn.ReLU(), nn.Dropout(0.3),
        nn.Linear(32, 16), nn.ReLU(),
        nn.Linear(16, 2), nn.LogSoftmax(dim=1))


oof = np.full(len(y_all), -1)
results = []
for k in range(K):
    test_idx = np.flatnonzero(folds == k)
    rest = np.random.permutation(np.flatnonzero(folds != k))
    val_idx, train_idx = rest[:70], rest[70:]

    logX = np.log1p(X_all)
    mean, std = logX[train_idx].mean(0), logX[train_idx].std(0) + 1e-8
    X = torch.from_numpy(((logX - mean) / std).astype(np.float32))
    y = torch.from_numpy(y_all)

    freq = np.bincount(y_all[train_idx], minlength=2)
    weight = torch.tensor(len(train_idx) / (2.0 * freq), dtype=torch.float32)
    loss_fn = nn.NLLLoss(weight=weight, reduction="sum")

    model = new_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=4e-4, momentum=0.9, nesterov=True, weight_decay=1e-3)

    best_loss, best_state, wait = np.inf, None, 0
    for epoch in range(80):
        model.train()
        for chunk in np.array_split(np.random.permutation(train_idx), 12):
            loss = loss_fn(model(X[chunk]), y[chunk])
            loss.backward()
            nn.utils.clip_grad_value_(model.parameters(), 5.0)
            optimizer.step()
            optimizer.zero_grad()

        model.eval()
        with torch.inference_mode():
            val_loss = loss_fn(model(X[val_idx]), y[val_idx]).item() / len(val_idx)
        if val_loss < best_loss:
            best_loss, best_state, wait = val_loss, copy.deepcopy(model.state_dict()), 0
        else:
            wait += 1
            if wait == 12:
                break

    model.load_state_dict(best_state)
    model.eval()
    with torch.inference_mode():
        oof[test_idx] = model(X[test_idx]).argmax(1).numpy()
    acc, f1 = stats(oof[test_idx], y_all[test_idx])
    results.append((acc, f1))
    print("fold %d stopped at epoch %2d, val loss %.4f, acc %.4f, f1 %.4f" % (k, epoch, best_loss, acc, f1))

assert (oof >= 0).all()
acc, f1 = stats(oof, y_all)
print("fold mean acc %.4f +- %.4f" % (np.mean([r[0] for r in results]), np.std([r[0] for r in results])))
print("out-of-fold accuracy %.4f f1 %.4f" % (acc, f1))
