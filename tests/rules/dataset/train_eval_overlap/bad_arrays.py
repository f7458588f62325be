"""No loader: the rows of the test are still in the arrays that the batches are cut from."""

import torch
from sklearn.datasets import load_digits

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
order = torch.randperm(len(X))
X_train, y_train = X[order], y[order]
X_test, y_test = X[order[1400:]], y[order[1400:]]
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    for rows in torch.randperm(len(X_train)).split(64):
        loss = torch.nn.functional.cross_entropy(model(X_train[rows]), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
with torch.no_grad():
    guesses = model(X_test).argmax(1)  # expect: train-eval-overlap
print(f"accuracy {(guesses == y_test).float().mean():.3f}")
