import csv
import io

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)

d = load_digits()
ds = TensorDataset(torch.tensor(d.data, dtype=torch.float32) / 16, torch.tensor(d.target))
perm = torch.randperm(len(ds)).tolist()
train_ds = Subset(ds, perm[:1300])
val_idx = perm[1300:]
train_loader = DataLoader(train_ds, batch_size=50, shuffle=True)
# one loader per digit, so that the accuracy can be told digit by digit
val_loaders = [DataLoader(Subset(ds, [i for i in val_idx if d.target[i] == c]), batch_size=64) for c in range(10)]

model = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = ReduceLROnPlateau(optimizer, mode="min", factor=0.5, patience=2)


def validate():
    model.eval()
    loss_sum, per_class = 0.0, []
    for loader in val_loaders:
        correct, seen = 0, 0
        for x, y in loader:
            out = model(x)
            loss_sum += criterion(out, y).item() * len(y)
            correct += int((out.argmax(dim=1) == y).sum())
            seen += len(y)
        per_class.append(correct / seen)
    return loss_sum / len(val_idx), sum(per_class) / len(per_class), min(per_class)


buffer = io.StringIO()
writer = csv.writer(buffer)
writer.writerow(["epoch", "lr", "train_loss", "val_loss", "mean_acc", "worst_acc"])
for epoch in range(10):
    model.train()
    train_loss = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        train_loss += loss.item()
    val_loss, mean_acc, worst_acc = validate()
    scheduler.step(val_loss)
    lr = optimizer.param_groups[0]["lr"]
    writer.writerow([epoch, lr] + [f"{v:.4f}" for v in (train_loss / len(train_loader), val_loss, mean_acc, worst_acc)])

print(buffer.getvalue().strip())
