"""LBFGS with a closure on the diabetes table, the whole set at once."""

import torch
import torch.nn as nn
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

torch.manual_seed(0)
X, y = load_diabetes(return_X_y=True, scaled=False)
X = torch.from_numpy(StandardScaler().fit_transform(X))
y = torch.from_numpy(StandardScaler().fit_transform(y[:, None]))
X_train, y_train, X_test, y_test = X[:350], y[:350], X[350:], y[350:]

model = nn.Sequential(nn.Linear(10, 6), nn.Tanh(), nn.Linear(6, 1)).double()
criterion = nn.MSELoss()
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5)

for i in range(12):

    def closure():
        optimizer.zero_grad()
        out = model(X_train)
        loss = criterion(out, y_train) + 1e-3 * sum(p.pow(2).sum() for p in model.parameters())
        loss.backward()
        return loss

    loss = optimizer.step(closure)
    with torch.no_grad():
        print(f"step {i}: loss {loss.item():.4f} test {criterion(model(X_test), y_test).item():.4f}")
