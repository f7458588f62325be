import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(100)

# 3 noisy sensors of 15 readings; the class says which sensor has the bump
N = 1300
y = torch.randint(0, 3, (N,))
X = torch.randn(N, 3, 15) * 0.7
where = torch.randint(0, 11, (N,))
for i in range(N):
    X[i, y[i], where[i]:where[i] + 4] += 1.6
train_loader = DataLoader(TensorDataset(X[:1000], y[:1000]), batch_size=25, shuffle=True)
val_X, val_y = X[1000:], y[1000:]


def build_model():
    return nn.Sequential(nn.Conv1d(3, 16, 4), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(16, 3))


def save_checkpoint(path, epoch, model, optimizer):
    torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)


def train(path, until):
    model = build_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    start_epoch = 0
    if os.path.isfile(path):
        checkpoint = torch.load(path)
        start_epoch = checkpoint["epoch"] + 1
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        print(f"=> loaded checkpoint (epoch {checkpoint['epoch']})")
    for epoch in range(start_epoch, until):
        model.train()
        total = 0.0
        for xb, yb in train_loader:
            loss = F.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            out = model(val_X)
        acc = (out.argmax(1) == val_y).float().mean().item()
        print(f"epoch {epoch} loss {total / len(train_loader):.4f} val {F.cross_entropy(out, val_y).item():.4f} acc {acc:.3f}")
        save_checkpoint(path, epoch, model, optimizer)


with tempfile.TemporaryDirectory() as folder:
    checkpoint_path = os.path.join(folder, "last.pth")
    train(checkpoint_path, until=2)  # the job is cut off here
    train(checkpoint_path, until=12)
