"""The best weights are in a file at once, the weights kept in memory are only printed, and the last ones are last."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
train = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
best_loss, best_state, kept = float("inf"), None, None
for epoch in range(10):
    for inputs, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    with torch.no_grad():
        val_loss = nn.functional.cross_entropy(model(x[1400:]), y[1400:]).item()
    if val_loss < best_loss:
        best_loss = val_loss
        kept = best_state = model.state_dict()
        torch.save(best_state, "best.pt")
    last_state = model.state_dict()
print(len(kept))
best_state = torch.load("best.pt")
model.load_state_dict(best_state)
torch.save({"last": last_state}, "last.pt")
