"""PINN for the Poisson problem u'' = -pi^2 sin(pi x), u(0) = u(1) = 0. The solution is sin(pi x)."""
import math
import torch
import torch.nn as nn


class PINN(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x)


def residual(model, x):
    x = x.requires_grad_(True)
    u = model(x)
    u_x = torch.autograd.grad(u, x, grad_outputs=torch.ones_like(u), create_graph=True)[0]
    u_xx = torch.autograd.grad(u_x, x, grad_outputs=torch.ones_like(u_x), create_graph=True)[0]
    return u_xx + math.pi ** 2 * torch.sin(math.pi * x)


def max_error(model):
    x = torch.linspace(0, 1, 101).unsqueeze(1)
    with torch.no_grad():
        return (model(x) - torch.sin(math.pi * x)).abs().max().item()


def train(epochs=1000, lr=3e-3):
    torch.manual_seed(0)
    model = PINN()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=400, gamma=0.4)
    x_bc = torch.tensor([[0.0], [1.0]])
    print(f"max error at the start {max_error(model):.4f}")
    for epoch in range(epochs):
        optimizer.zero_grad()
        loss_pde = residual(model, torch.rand(64, 1)).pow(2).mean()
        loss_bc = model(x_bc).pow(2).mean()
        loss = loss_pde + 50.0 * loss_bc
        loss.backward()
        optimizer.step()
        scheduler.step()
        if epoch % 200 == 0:
            print(f"epoch {epoch} loss {loss.item():.5f} pde {loss_pde.item():.5f} bc {loss_bc.item():.6f}")
    print(f"max error at the end {max_error(model):.4f}")


if __name__ == "__main__":
    train()
