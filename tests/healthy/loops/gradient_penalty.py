"""WGAN-GP on two moons: several critic steps to one of the generator, penalty with create_graph."""

import torch
from sklearn.datasets import make_moons
from torch import autograd, nn

torch.manual_seed(0)
points, _ = make_moons(4000, noise=0.05, random_state=0)
points = torch.tensor((points - points.mean(0)) / points.std(0), dtype=torch.float32)
batch_size, n_critic, gp_weight = 128, 5, 1.0


def mlp(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, n_out))


def gradient_penalty(critic, real, fake):
    alpha = torch.rand(real.size(0), 1)
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    grads = autograd.grad(critic(mixed).sum(), mixed, create_graph=True)[0]
    return ((grads.norm(2, dim=1) - 1) ** 2).mean()


G, D = mlp(4, 2), mlp(2, 1)
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.9))
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.9))

for iteration in range(200):
    for _ in range(n_critic):
        real = points[torch.randint(len(points), (batch_size,))]
        fake = G(torch.randn(batch_size, 4)).detach()
        d_loss = D(fake).mean() - D(real).mean() + gp_weight * gradient_penalty(D, real, fake)
        opt_d.zero_grad()
        d_loss.backward()
        opt_d.step()
    g_loss = -D(G(torch.randn(batch_size, 4))).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
    if iteration % 50 == 49:
        with torch.no_grad():
            distance = torch.cdist(G(torch.randn(500, 4)), points).min(dim=1).values.mean()
        print(f"{iteration + 1}: critic {-d_loss.item():.3f}, distance of samples from the data {distance:.3f}")
