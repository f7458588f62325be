# DCGAN-tutorial style loop on a 2-D cloud
import torch
import torch.nn as nn
import torch.optim as optim

torch.manual_seed(999)
batch_size, nz, lr, beta1 = 128, 8, 1e-3, 0.5
num_iters = 900

angle = torch.rand(4000) * 2 * torch.pi
data = torch.stack([2 + angle.cos(), -1 + angle.sin()], 1) + 0.05 * torch.randn(4000, 2)
dataloader = torch.utils.data.DataLoader(data, batch_size=batch_size, shuffle=True, drop_last=True)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(nz, 64), nn.ReLU(True), nn.Linear(64, 64), nn.ReLU(True), nn.Linear(64, 2))

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1), nn.Sigmoid())

    def forward(self, x):
        return self.main(x)


def nearest_distance(net):
    with torch.no_grad():
        samples = net(torch.randn(500, nz))
    d = torch.cdist(samples, data)
    return d.min(1).values.mean().item() + d.min(0).values.mean().item()


netG, netD = Generator(), Discriminator()
criterion = nn.BCELoss()
real_label, fake_label = 1.0, 0.0
optimizerD = optim.Adam(netD.parameters(), lr=lr, betas=(beta1, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=lr, betas=(beta1, 0.999))
print(f"distance to the data before training: {nearest_distance(netG):.3f}")

iters = 0
while iters < num_iters:
    for real in dataloader:
        # (1) Update D network: maximize log(D(x)) + log(1 - D(G(z)))
        netD.zero_grad()
        label = torch.full((real.size(0),), real_label)
        output = netD(real).view(-1)
        errD_real = criterion(output, label)
        errD_real.backward()
        fake = netG(torch.randn(real.size(0), nz))
        label.fill_(fake_label)
        output = netD(fake.detach()).view(-1)
        errD_fake = criterion(output, label)
        errD_fake.backward()
        D_G_z1 = output.mean().item()
        errD = errD_real + errD_fake
        optimizerD.step()
        # (2) Update G network: maximize log(D(G(z)))
        netG.zero_grad()
        label.fill_(real_label)
        output = netD(fake).view(-1)
        errG = criterion(output, label)
        errG.backward()
        optimizerG.step()
        if iters % 150 == 0:
            print(f"[{iters}/{num_iters}] Loss_D: {errD.item():.3f} Loss_G: {errG.item():.3f} D(G(z)): {D_G_z1:.3f}")
        iters += 1
print(f"distance to the data after training: {nearest_distance(netG):.3f}")
