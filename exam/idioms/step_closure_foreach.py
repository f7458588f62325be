import torch
import torch.nn as nn
from sklearn.datasets import load_diabetes
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(42)

x, y = load_diabetes(return_X_y=True, scaled=False)
x = torch.as_tensor(x, dtype=torch.float32)
y = torch.as_tensor(y, dtype=torch.float32).reshape(-1, 1)
train_rows, val_rows = random_split(range(len(x)), [342, 100])
tr, va = list(train_rows), list(val_rows)
x = (x - x[tr].mean(0)) / x[tr].std(0)
y = (y - y[tr].mean()) / y[tr].std()
train_loader = DataLoader(TensorDataset(x[tr], y[tr]), batch_size=38, shuffle=True)
val_loader = DataLoader(TensorDataset(x[va], y[va]), batch_size=100)


class ForeachSGD:
    def __init__(self, params, lr, momentum):
        self.params = list(params)
        self.lr, self.momentum = lr, momentum
        self.buffers = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self):
        grads = [p.grad for p in self.params]
        torch._foreach_mul_(self.buffers, self.momentum)
        torch._foreach_add_(self.buffers, grads)
        torch._foreach_add_(self.params, self.buffers, alpha=-self.lr)

    def zero_grad(self):
        torch._foreach_zero_([p.grad for p in self.params])


def make_train_step(model, loss_fn, optimizer):
    def perform_train_step(xb, yb):
        model.train()
        yhat = model(xb)
        loss = loss_fn(yhat, yb)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return perform_train_step


def make_val_step(model, loss_fn):
    @torch.no_grad()
    def perform_val_step(xb, yb):
        model.eval()
        return loss_fn(model(xb), yb).item()

    return perform_val_step


def mini_batch(loader, step):
    return sum(step(xb, yb) for xb, yb in loader) / len(loader)


model = nn.Sequential(nn.Linear(10, 8), nn.Tanh(), nn.Linear(8, 1))
loss_fn = nn.MSELoss(reduction="mean")
optimizer = ForeachSGD(model.parameters(), lr=0.03, momentum=0.8)
train_step = make_train_step(model, loss_fn, optimizer)
val_step = make_val_step(model, nn.MSELoss())

start = mini_batch(val_loader, val_step)
losses, val_losses = [], []
for epoch in range(15):
    losses.append(mini_batch(train_loader, train_step))
    val_losses.append(mini_batch(val_loader, val_step))

print(f"train: first {losses[0]:.4f} last {losses[-1]:.4f}")
print(f"val: before training {start:.4f} last {val_losses[-1]:.4f}")
