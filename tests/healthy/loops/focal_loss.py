"""Focal loss written by hand on unbalanced binary data."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class FocalLoss(nn.Module):
    def __init__(self, alpha=0.75, gamma=2.0):
        super().__init__()
        self.alpha, self.gamma = alpha, gamma

    def forward(self, logits, targets):
        p = torch.sigmoid(logits)
        pt = torch.where(targets == 1, p, 1 - p).clamp(min=1e-6)
        alpha_t = torch.where(targets == 1, self.alpha, 1 - self.alpha)
        return (-alpha_t * (1 - pt) ** self.gamma * pt.log()).mean()


X, digit = load_digits(return_X_y=True)
X = torch.tensor(X / 16, dtype=torch.float32)
is_eight = torch.tensor((digit == 8).astype("float32"))
train_loader = DataLoader(TensorDataset(X[:1400], is_eight[:1400]), batch_size=64, shuffle=True)
X_val, y_val = X[1400:], is_eight[1400:]

net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1), nn.Flatten(0))
criterion = FocalLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(15):
    losses = []
    for xb, yb in train_loader:
        loss = criterion(net(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    with torch.no_grad():
        predicted = (net(X_val) > 0).float()
    tp = (predicted * y_val).sum()
    recall, precision = tp / y_val.sum(), tp / predicted.sum().clamp(min=1)
    print(f"{epoch}: loss {torch.stack(losses).mean():.4f} recall {recall:.3f} precision {precision:.3f}")
