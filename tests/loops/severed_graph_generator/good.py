"""A generator and its critic: the samples are cut off in the loss of the critic alone."""

import math

import torch
from torch import nn

torch.manual_seed(7)
generator = nn.Sequential(nn.Linear(4, 32), nn.LeakyReLU(0.2), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)

for step in range(600):
    angle = 2 * math.pi * torch.rand(64)
    real = torch.stack([angle.cos(), angle.sin()], 1)
    fake = generator(torch.randn(64, 4))

    critic_optimizer.zero_grad()
    critic_loss = criterion(critic(real), ones) + criterion(critic(fake.detach()), zeros)
    critic_loss.backward()
    critic_optimizer.step()

    generator_optimizer.zero_grad()
    generator_loss = criterion(critic(fake), ones)
    generator_loss.backward()
    generator_optimizer.step()

    if step % 200 == 0:
        with torch.no_grad():
            print(step, critic_loss.item(), generator(torch.randn(256, 4)).norm(dim=1).mean().item())
