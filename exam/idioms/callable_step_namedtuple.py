from typing import NamedTuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(5)


class Batch(NamedTuple):
    x: torch.Tensor
    y: torch.Tensor
    weight: torch.Tensor


class Weighted(Dataset):
    def __init__(self, lo, hi):
        X, y = make_classification(1600, 20, n_informative=8, n_classes=3, weights=[0.7, 0.2, 0.1], class_sep=1.6, random_state=4)
        freq = torch.bincount(torch.tensor(y)).float() / len(y)
        self.x = torch.tensor(X[lo:hi], dtype=torch.float32)
        self.y = torch.tensor(y[lo:hi])
        self.w = (1.0 / (3 * freq))[self.y]

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return Batch(self.x[i], self.y[i], self.w[i])


class Step:
    def __init__(self, model, optimizer):
        self.model, self.optimizer, self.calls = model, optimizer, 0

    def __call__(self, batch: Batch) -> float:
        self.calls += 1
        self.optimizer.zero_grad()
        per_row = F.cross_entropy(self.model(batch.x), batch.y, reduction="none")
        loss = (per_row * batch.weight).sum() / batch.weight.sum()
        loss.backward()
        self.optimizer.step()
        return loss.item()


class Classifier(nn.Module):
    def __init__(self, n_out):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU())
        self.head = nn.Linear(48, n_out)

    def forward(self, x):
        return self.head(self.backbone(x))


model = Classifier(100)
model.head = nn.Linear(48, 3)
step = Step(model, torch.optim.AdamW(model.parameters(), lr=2e-3))
loader = DataLoader(Weighted(0, 1300), batch_size=64, shuffle=True)
held = Weighted(1300, 1600)
for epoch in range(8):
    losses = [step(batch) for batch in loader]
    with torch.inference_mode():
        guess = model(held.x).argmax(1)
    recalls = [(guess[held.y == c] == c).float().mean().item() for c in range(3)]
    print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f} balanced acc {sum(recalls) / 3:.3f}")
print(f"FINAL loss {losses[-1]:.4f} balanced acc {sum(recalls) / 3:.3f} after {step.calls} steps")
