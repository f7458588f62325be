import math
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split
from tqdm.auto import tqdm

torch.manual_seed(42)


def make_spirals(n_per_class=300, classes=3):
    xs, ys = [], []
    for c in range(classes):
        t = torch.linspace(0.1, 1, n_per_class)
        angle = t * 4.5 + c * 2 * math.pi / classes + torch.randn(n_per_class) * 0.12
        xs.append(torch.stack([t * angle.sin(), t * angle.cos()], dim=1))
        ys.append(torch.full((n_per_class,), c))
    return torch.cat(xs), torch.cat(ys)


X, y = make_spirals()
train_ds, val_ds = random_split(TensorDataset(X, y), [720, 180], generator=torch.Generator().manual_seed(0))
train_loader = DataLoader(train_ds, batch_size=32, shuffle=True)
val_loader = DataLoader(val_ds, batch_size=90)

model = nn.Sequential(
    nn.Linear(2, 64),
    nn.ReLU(),
    nn.Linear(64, 64),
    nn.ReLU(),
    nn.Linear(64, 3),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

history = []
for epoch in range(25):
    model.train()
    running = 0.0
    pbar = tqdm(enumerate(train_loader), total=len(train_loader), desc=f"epoch {epoch}", leave=False)
    for i, (xb, yb) in pbar:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        running += loss.item()
        pbar.set_postfix(loss=running / (i + 1))
    history.append(running / len(train_loader))

model.eval()
correct = 0
with torch.no_grad():
    for xb, yb in val_loader:
        correct += (model(xb).argmax(1) == yb).sum().item()
print(f"first loss {history[0]:.4f}  last loss {history[-1]:.4f}  val acc {correct / len(val_ds):.3f}")
