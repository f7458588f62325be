"""Plain SGD by hand with annealed gradient noise (Neelakantan et al., 2015)."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(31)


class FriedmanData(TensorDataset):
    def __init__(self, n):
        x = torch.rand(n, 8)
        y = 10 * torch.sin(torch.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
        super().__init__(x * 2 - 1, ((y - 14.4) / 4.9).unsqueeze(1))


train_loader = DataLoader(FriedmanData(1600), batch_size=32, shuffle=True)
val_x, val_y = FriedmanData(400).tensors

model = nn.Sequential(nn.Linear(8, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))
params = [p for p in model.parameters() if p.requires_grad]
eta, gamma, lr = 1e-4, 0.55, 0.05


def evaluate():
    with torch.no_grad():
        return F.mse_loss(model(val_x), val_y).item()


print(f"initial val mse {evaluate():.4f}")
step = 0
for epoch in range(25):
    epoch_loss = 0.0
    for x, y in train_loader:
        for p in params:
            p.grad = None
        loss = F.mse_loss(model(x), y)
        loss.backward()

        sigma = (eta / (1 + step) ** gamma) ** 0.5
        with torch.no_grad():
            for p in params:
                if p.grad is None:
                    continue
                p.grad.add_(torch.randn_like(p.grad), alpha=sigma)
                p.sub_(lr * p.grad)
        step += 1
        epoch_loss += loss.item()
    if epoch % 6 == 0:
        print(f"epoch {epoch:2d} train mse {epoch_loss / len(train_loader):.4f} val mse {evaluate():.4f}")
