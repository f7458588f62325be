import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_breast_cancer

rng = np.random.default_rng(0)
torch.manual_seed(0)

X, y = load_breast_cancer(return_X_y=True)
order = rng.permutation(len(X))
X, y = X[order], y[order]
n_test = 120
X_test, y_test = X[:n_test], y[:n_test]
X_train, y_train = X[n_test:], y[n_test:]
mu, sigma = X_train.mean(axis=0), X_train.std(axis=0)
X_train = ((X_train - mu) / sigma).astype("float32")
X_test = ((X_test - mu) / sigma).astype("float32")

model = nn.Sequential(nn.Linear(30, 16), nn.Sigmoid(), nn.Linear(16, 1), nn.Sigmoid())
criterion = nn.BCELoss()
learning_rate = 0.5
n_batches = 15

for epoch in range(20):
    shuffled = rng.permutation(len(X_train))
    losses = []
    for chunk in np.array_split(shuffled, n_batches):
        xb = torch.from_numpy(X_train[chunk])
        yb = torch.from_numpy(y_train[chunk]).float().view(-1, 1)

        y_pred = model(xb)
        loss = criterion(y_pred, yb)
        loss.backward()

        for p in model.parameters():
            p.data.add_(p.grad, alpha=-learning_rate)
            p.grad.detach_()
            p.grad.zero_()
        losses.append(loss.item())
    if epoch in (0, 9, 19):
        print(f"epoch {epoch + 1:2d}: bce {np.mean(losses):.4f}")

with torch.no_grad():
    p_test = model(torch.from_numpy(X_test)).numpy().ravel()
print(f"test accuracy {((p_test > 0.5) == y_test).mean():.3f}")
