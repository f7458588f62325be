import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.amp import GradScaler, autocast
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(77)

X, y = load_digits(return_X_y=True)
X = torch.tensor(X / 16.0, dtype=torch.float32)
X = X - 0.3
y = torch.tensor(y)
shuffle = torch.randperm(len(X))
X, y = X[shuffle], y[shuffle]
train_loader = DataLoader(TensorDataset(X[:1500], y[:1500]), batch_size=50, shuffle=True)
valid_loader = DataLoader(TensorDataset(X[1500:], y[1500:]), batch_size=100)

model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = GradScaler("cpu")

for epoch in range(6):
    model.train()
    train_loss = 0.0
    for inputs, labels in train_loader:
        with autocast("cpu", dtype=torch.bfloat16):
            outputs = model(inputs)
            loss = F.cross_entropy(outputs, labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=False)
        train_loss += loss.item()

    model.eval()
    correct = 0
    with torch.inference_mode(), autocast("cpu", dtype=torch.bfloat16):
        for inputs, labels in valid_loader:
            correct += (model(inputs).argmax(1) == labels).sum().item()
    print(f"epoch {epoch} loss {train_loss / len(train_loader):.4f} acc {correct / len(X[1500:]):.4f}")
