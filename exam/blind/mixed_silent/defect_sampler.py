# Defect detection on sensor rows. Classes: ok / scratch / crack (crack is rare)
import numpy as np
import torch
from sklearn.metrics import balanced_accuracy_score, classification_report
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

rng = np.random.default_rng(7)
torch.manual_seed(7)


def simulate(n):
    kind = rng.choice(3, size=n, p=[0.85, 0.11, 0.04])
    t = np.linspace(0, 1, 24)
    base = np.sin(2 * np.pi * (t[None] * 2 + rng.uniform(0, 0.2, (n, 1))))
    noise = rng.normal(0, 0.45, (n, 24))
    x = base + noise
    x[kind == 1, 6:12] += 0.8
    x[kind == 2, 14:18] -= 1.1
    return x.astype(np.float32), kind.astype(np.int64)


class SensorData(Dataset):
    def __init__(self, x, y):
        self.x = torch.as_tensor(x)
        self.y = torch.as_tensor(y)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


X, Y = simulate(4000)
X_tr, X_va, Y_tr, Y_va = train_test_split(X, Y, test_size=0.3, stratify=Y, random_state=1)
train_ds, val_ds = SensorData(X_tr, Y_tr), SensorData(X_va, Y_va)

class_count = np.bincount(Y_tr)
print("class counts:", class_count)
class_weights = 1.0 / torch.tensor(class_count, dtype=torch.double)
sampler = WeightedRandomSampler(class_weights, num_samples=len(train_ds), replacement=True)

train_dl = DataLoader(train_ds, batch_size=64, sampler=sampler)
val_dl = DataLoader(val_ds, batch_size=256)

model = torch.nn.Sequential(
    torch.nn.Linear(24, 64),
    torch.nn.BatchNorm1d(64),
    torch.nn.ReLU(),
    torch.nn.Linear(64, 32),
    torch.nn.ReLU(),
    torch.nn.Linear(32, 3),
)
optim = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
loss_fn = torch.nn.CrossEntropyLoss()

for epoch in range(8):
    model.train()
    losses = []
    for xb, yb in train_dl:
        optim.zero_grad()
        loss = loss_fn(model(xb), yb)
        loss.backward()
        optim.step()
        losses.append(loss.item())

    model.eval()
    preds, gts = [], []
    with torch.no_grad():
        for xb, yb in val_dl:
            preds.append(model(xb).argmax(1))
            gts.append(yb)
    preds, gts = torch.cat(preds).numpy(), torch.cat(gts).numpy()
    print(f"epoch {epoch}: train_loss={np.mean(losses):.4f} "
          f"val_balanced_acc={balanced_accuracy_score(gts, preds):.4f}")

print(classification_report(gts, preds, target_names=["ok", "scratch", "crack"], zero_division=0))
