import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(17)

w = torch.randn(16, 1)
X = torch.randn(1100, 16)
Y = X @ w + 0.5 * (X[:, :1] * X[:, 1:2]) + 0.1 * torch.randn(1100, 1)
Y = (Y - Y[:900].mean()) / Y[:900].std()
train_loader = DataLoader(TensorDataset(X[:900], Y[:900]), batch_size=8, shuffle=True)
X_val, Y_val = X[900:], Y[900:]

model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
loss_fn = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
accumulation_steps = 8


def val_mse():
    model.eval()
    with torch.no_grad():
        return loss_fn(model(X_val), Y_val).item()


print(f"val mse before training: {val_mse():.4f}")
for epoch in range(15):
    model.train()
    optimizer.zero_grad()
    running, pending = 0.0, 0
    for i, (x, y) in enumerate(train_loader):
        loss = loss_fn(model(x), y)
        running += loss.item()
        (loss / accumulation_steps).backward()
        pending += 1
        if (i + 1) % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
            pending = 0
    if pending > 0:  # the last, shorter group of the epoch
        for p in model.parameters():
            p.grad.mul_(accumulation_steps / pending)
        optimizer.step()
        optimizer.zero_grad()
    print(f"epoch {epoch}: train mse {running / len(train_loader):.4f}")
print(f"val mse after training: {val_mse():.4f}")
