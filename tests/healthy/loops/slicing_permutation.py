"""No loader: a permutation per epoch and slices of tensors."""

import numpy as np
import torch
from sklearn.datasets import load_digits

np.random.seed(0)
torch.manual_seed(0)
X, Y = load_digits(return_X_y=True)
X = torch.from_numpy(X).float().div(16)
Y = torch.from_numpy(Y)
X_train, Y_train, X_valid, Y_valid = X[:1500], Y[:1500], X[1500:], Y[1500:]
n, batch_size = X_train.shape[0], 50

net = torch.nn.Sequential(
    torch.nn.Linear(64, 100),
    torch.nn.Tanh(),
    torch.nn.Linear(100, 10),
    torch.nn.LogSoftmax(dim=1),
)
criterion = torch.nn.NLLLoss()
optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3)

for epoch in range(8):
    perm = torch.randperm(n)
    epoch_loss = 0
    for i in range(0, n, batch_size):
        indices = perm[i : i + batch_size]
        batch_x, batch_y = X_train[indices], Y_train[indices]
        optimizer.zero_grad()
        loss = criterion(net(batch_x), batch_y)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * len(indices)
    with torch.no_grad():
        acc = (net(X_valid).argmax(1) == Y_valid).float().mean().item()
    print(f"{epoch} {epoch_loss / n:.4f} {acc:.4f}")
