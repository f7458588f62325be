"""A GAN on a ring of points: discriminator and generator, an optimizer each."""

import math

import torch
from torch import nn

torch.manual_seed(0)
batch_size, latent = 128, 8


def real_points(n):
    angle = 2 * math.pi * torch.rand(n)
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(n, 2)


generator = nn.Sequential(nn.Linear(latent, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 2))
discriminator = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
optim_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
optim_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(batch_size, 1), torch.zeros(batch_size, 1)

for step in range(1500):
    # discriminator: real against fake
    real = real_points(batch_size)
    fake = generator(torch.randn(batch_size, latent))
    optim_d.zero_grad()
    loss_d = criterion(discriminator(real), ones) + criterion(discriminator(fake.detach()), zeros)
    loss_d.backward()
    optim_d.step()

    # generator: make the discriminator say real
    optim_g.zero_grad()
    loss_g = criterion(discriminator(fake), ones)
    loss_g.backward()
    optim_g.step()

    if step % 300 == 299:
        with torch.no_grad():
            radius = generator(torch.randn(500, latent)).norm(dim=1)
        print(f"{step}: D {loss_d.item():.3f} G {loss_g.item():.3f} radius {radius.mean():.2f} +- {radius.std():.2f}")
