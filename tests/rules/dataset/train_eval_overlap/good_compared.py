"""The training rows are judged, and all rows together are drawn; neither is taken for an evaluation of new rows."""

import torch
from sklearn.datasets import load_digits

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
x, labels = X[:1400], y[:1400]
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    for rows in torch.randperm(len(x)).split(64):
        loss = torch.nn.functional.cross_entropy(model(x[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(f"{epoch} {(model(x).argmax(1) == labels).float().mean():.3f}")
with torch.no_grad():
    print([int((model(X).argmax(1) == y)[y == digit].sum()) for digit in range(10)])
