"""A small student learns from a larger teacher that is trained first; two loops, one after the other."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
loader = DataLoader(TensorDataset(X[:1400], y[:1400]), batch_size=64, shuffle=True)
teacher = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
student = nn.Sequential(nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 10))


@torch.no_grad()
def accuracy(net):
    return (net(X[1400:]).argmax(1) == y[1400:]).float().mean().item()


optimizer = torch.optim.Adam(teacher.parameters(), lr=3e-3)
for epoch in range(6):
    for images, labels in loader:
        optimizer.zero_grad()
        F.cross_entropy(teacher(images), labels).backward()
        optimizer.step()
print(f"teacher {accuracy(teacher):.3f}")

teacher.eval()
T, alpha = 3.0, 0.7
optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)
for epoch in range(8):
    for images, labels in loader:
        with torch.no_grad():
            soft = F.softmax(teacher(images) / T, dim=1)
        logits = student(images)
        distill = F.kl_div(F.log_softmax(logits / T, dim=1), soft, reduction="batchmean") * T * T
        loss = alpha * distill + (1 - alpha) * F.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f} student {accuracy(student):.3f}")
