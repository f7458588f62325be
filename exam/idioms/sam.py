import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_moons
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(14)


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        grads = [p.grad for g in self.param_groups for p in g["params"] if p.grad is not None]
        norm = torch.norm(torch.stack([g.norm() for g in grads]))
        for group in self.param_groups:
            scale = group["rho"] / (norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["old_p"] = p.data.clone()
                p.add_(p.grad * scale)
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        if zero_grad:
            self.zero_grad()


X, y = make_moons(n_samples=900, noise=0.15, random_state=0)
X = torch.tensor(X - X[:700].mean(0), dtype=torch.float32)
y = torch.tensor(y)
loader = DataLoader(TensorDataset(X[:700], y[:700]), batch_size=35, shuffle=True)
X_val, y_val = X[700:], y[700:]

model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = SAM(model.parameters(), torch.optim.SGD, rho=0.1, lr=0.05, momentum=0.9)

for epoch in range(20):
    total = 0.0
    for inputs, targets in loader:
        loss = F.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.first_step(zero_grad=True)

        F.cross_entropy(model(inputs), targets).backward()
        optimizer.second_step(zero_grad=True)
        total += loss.item()
    if epoch % 5 == 0 or epoch == 19:
        with torch.no_grad():
            out = model(X_val)
        acc = (out.argmax(1) == y_val).float().mean().item()
        print(f"epoch {epoch:2d} train {total / len(loader):.4f} val {F.cross_entropy(out, y_val).item():.4f} acc {acc:.3f}")
