"""GAN on a ring of gaussians; judged on held-out samples with an energy distance."""
import math

import torch
import torch.nn as nn

torch.manual_seed(9)


def real(n):
    k = torch.randint(0, 6, (n,)).float() * (2 * math.pi / 6)
    return torch.stack([k.cos(), k.sin()], 1) + 0.08 * torch.randn(n, 2)


def energy_distance(a, b):
    d = lambda u, v: torch.cdist(u, v).mean()
    return (2 * d(a, b) - d(a, a) - d(b, b)).item()


Z = 8
G = nn.Sequential(nn.Linear(Z, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
D = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.9))
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.9))
bce = nn.BCEWithLogitsLoss()

train_data = real(8000)
held_out = real(1000)
BATCH = 128
ones, zeros = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)


@torch.no_grad()
def report(tag):
    fake = G(torch.randn(1000, Z))
    centres = torch.stack([torch.tensor([math.cos(k * math.pi / 3), math.sin(k * math.pi / 3)]) for k in range(6)])
    dist, which = torch.cdist(fake, centres).min(1)
    modes = which[dist < 0.25].unique().numel()
    print(f"{tag}: energy distance {energy_distance(fake, held_out):.4f} modes {modes}/6 "
          f"near a mode {(dist < 0.25).float().mean():.3f}")


print(f"real vs real: {energy_distance(real(1000), held_out):.4f}")
report("start")
for step in range(1, 2001):
    x = train_data[torch.randint(0, len(train_data), (BATCH,))]
    # critic
    fake = G(torch.randn(BATCH, Z)).detach()
    loss_d = bce(D(x), 0.9 * ones) + bce(D(fake), zeros)
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    # generator
    loss_g = bce(D(G(torch.randn(BATCH, Z))), ones)
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    if step % 400 == 0:
        print(f"step {step} loss_d {loss_d.item():.3f} loss_g {loss_g.item():.3f}")
        report(f"step {step}")
