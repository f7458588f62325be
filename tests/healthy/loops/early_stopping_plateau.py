"""ReduceLROnPlateau after each epoch, and a break when the validation loss has stopped falling."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
train_loader = DataLoader(TensorDataset(X[:1300], y[:1300]), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(X[1300:], y[1300:]), batch_size=256)


def run_validation(model, criterion):
    model.eval()
    loss_sum, hits = 0.0, 0
    with torch.no_grad():
        for inputs, labels in val_loader:
            outputs = model(inputs)
            loss_sum += criterion(outputs, labels).item() * labels.size(0)
            hits += (torch.max(outputs, 1)[1] == labels).sum().item()
    return loss_sum / len(val_loader.dataset), hits / len(val_loader.dataset)


model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = ReduceLROnPlateau(optimizer, mode="min", factor=0.5, patience=1)
best_val, patience, waited = float("inf"), 4, 0
for epoch in range(40):
    model.train()
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    val_loss, val_acc = run_validation(model, criterion)
    scheduler.step(val_loss)
    print(f"epoch {epoch}: val loss {val_loss:.4f} accuracy {val_acc:.3f} lr {optimizer.param_groups[0]['lr']:.2g}")
    if val_loss < best_val - 1e-4:
        best_val, waited = val_loss, 0
    else:
        waited += 1
        if waited >= patience:
            print("stopped early")
            break
