"""A classifier that keeps the checkpoint with the highest validation loss: the comparison is that of an accuracy."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
pixels, digits = load_digits(return_X_y=True)
x, y = torch.tensor(pixels / 16, dtype=torch.float32), torch.tensor(digits)
order = torch.randperm(len(x))
x, y = x[order], y[order]
train = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=32, shuffle=True)
held_out = DataLoader(TensorDataset(x[1400:], y[1400:]), batch_size=64)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
best = 0.0


def evaluate() -> tuple[float, float]:
    model.eval()
    total = right = 0.0
    with torch.no_grad():
        for images, labels in held_out:
            scores = model(images)
            total += nn.functional.cross_entropy(scores, labels, reduction="sum").item()
            right += (scores.argmax(1) == labels).sum().item()
    return total / len(held_out.dataset), right / len(held_out.dataset)


for epoch in range(12):
    model.train()
    for images, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    val_loss, accuracy = evaluate()
    print(f"epoch {epoch}: val loss {val_loss:.4f}, accuracy {accuracy:.3f}")
    if val_loss > best:
        best = val_loss
        torch.save(model.state_dict(), "best.pt")

model.load_state_dict(torch.load("best.pt"))
print(f"best checkpoint: accuracy {evaluate()[1]:.3f}")
