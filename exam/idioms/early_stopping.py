import copy

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(9)

# few and noisy samples, so that the net begins to overfit after a while
w = torch.randn(20)


def draw(n):
    x = torch.randn(n, 20)
    y = ((x @ w + 1.0 * torch.randn(n)) > 0).float().unsqueeze(1)
    return x, y


train_dl = DataLoader(TensorDataset(*draw(300)), batch_size=20, shuffle=True)
X_val, y_val = draw(200)
X_test, y_test = draw(400)

model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1))
loss_fn = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

n_epochs, patience = 60, 6
best_loss = np.inf
best_weights = copy.deepcopy(model.state_dict())
bad_epochs = 0
history = []

for epoch in range(n_epochs):
    model.train()
    for xb, yb in train_dl:
        optimizer.zero_grad()
        loss = loss_fn(model(xb), yb)
        loss.backward()
        optimizer.step()

    model.eval()
    with torch.no_grad():
        val_loss = loss_fn(model(X_val), y_val).item()
    history.append(val_loss)
    if val_loss < best_loss:
        best_loss = val_loss
        best_weights = copy.deepcopy(model.state_dict())
        bad_epochs = 0
    else:
        bad_epochs += 1
        if bad_epochs >= patience:
            print(f"stopped after epoch {epoch}")
            break

model.load_state_dict(best_weights)
model.eval()
with torch.no_grad():
    logits = model(X_test)
    test_loss = loss_fn(logits, y_test).item()
    test_acc = ((logits > 0).float() == y_test).float().mean().item()
print(f"val loss: first {history[0]:.4f} kept {best_loss:.4f}")
print(f"test loss {test_loss:.4f} acc {test_acc:.3f}")
