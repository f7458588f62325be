"""A GAN whose discriminator goes backward twice before its step: for real rows and for made ones, by one function."""

import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
points = torch.randn(2048, 2) @ torch.tensor([[1.0, 0.5], [0.0, 0.7]]) + 2
generator = nn.Sequential(nn.Linear(8, 32), nn.LeakyReLU(0.2), nn.Linear(32, 2))
discriminator = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
optim_g = torch.optim.SGD(generator.parameters(), lr=0.01, momentum=0.9)
optim_d = torch.optim.SGD(discriminator.parameters(), lr=0.01, momentum=0.9)
criterion = nn.BCEWithLogitsLoss()


def go_backward(rows, label):
    loss = criterion(discriminator(rows), torch.full((len(rows), 1), label))
    loss.backward()
    return loss.item()


for epoch in range(20):
    for real in DataLoader(points, batch_size=64, shuffle=True):
        discriminator.zero_grad()
        loss_d = go_backward(real, 1.0)
        made = generator(torch.randn(len(real), 8))
        loss_d += go_backward(made.detach(), 0.0)
        optim_d.step()

        generator.zero_grad()
        loss_g = go_backward(made, 1.0)
        optim_g.step()
    print(f"epoch {epoch}: D {loss_d:.3f} G {loss_g:.3f}")
