import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad * (s + x * s * (1 - s))


class SwishLayer(nn.Module):
    def forward(self, x):
        return Swish.apply(x)


class SignMomentum(Optimizer):
    def __init__(self, params, lr=1e-3, beta=0.9, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, beta=beta, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                buf = state.setdefault("buf", torch.zeros_like(p))
                buf.mul_(group["beta"]).add_(p.grad, alpha=1 - group["beta"])
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(buf.sign(), alpha=-group["lr"])


data = load_breast_cancer()
x = torch.tensor(data.data, dtype=torch.float32)
x = (x - x.mean(0)) / x.std(0)
y = torch.tensor(data.target, dtype=torch.float32)
p = torch.randperm(len(x))
train, val = p[:450], p[450:]
loader = DataLoader(TensorDataset(x[train], y[train]), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(30, 24), SwishLayer(), nn.Linear(24, 1), nn.Flatten(0))
opt = SignMomentum(model.parameters(), lr=1e-3, weight_decay=0.1)
bce = nn.BCEWithLogitsLoss()

for epoch in range(12):
    acc_loss = torch.zeros(())
    for xb, yb in loader:
        opt.zero_grad()
        loss = bce(model(xb), yb)
        loss.backward()
        opt.step()
        acc_loss += loss.detach()
    with torch.no_grad():
        acc = ((model(x[val]) > 0) == (y[val] > 0.5)).float().mean()
    print(f"{epoch:02d} loss {acc_loss / len(loader):.4f} acc {acc:.3f}")
print(f"FINAL loss {acc_loss / len(loader):.4f} acc {acc:.3f}")
