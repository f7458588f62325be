import argparse
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--n_epochs", type=int, default=50)
parser.add_argument("--batch_size", type=int, default=100)
parser.add_argument("--lr", type=float, default=2e-3)
parser.add_argument("--latent_dim", type=int, default=4)
parser.add_argument("--n_critic", type=int, default=5)
parser.add_argument("--clip_value", type=float, default=0.1)
opt = parser.parse_args()

np.random.seed(0)
torch.manual_seed(0)
centers = np.array([[1.5, 0.0], [-0.75, 1.3], [-0.75, -1.3]])
cloud = centers[np.random.randint(0, 3, 5000)] + 0.15 * np.random.randn(5000, 2)
cloud = torch.tensor(cloud, dtype=torch.float32)
loader = DataLoader(TensorDataset(cloud), batch_size=opt.batch_size, shuffle=True)


def sliced_wasserstein(a, b, n_proj=64):
    g = torch.Generator().manual_seed(1)
    v = torch.randn(2, n_proj, generator=g)
    v = v / v.norm(dim=0)
    return ((a @ v).sort(0).values - (b @ v).sort(0).values).abs().mean().item()


generator = nn.Sequential(nn.Linear(opt.latent_dim, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
critic = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
optimizer_G = torch.optim.RMSprop(generator.parameters(), lr=opt.lr)
optimizer_C = torch.optim.RMSprop(critic.parameters(), lr=opt.lr)

with torch.no_grad():
    start = sliced_wasserstein(generator(torch.randn(2000, opt.latent_dim)), cloud[:2000])
batches_done = 0
for epoch in range(opt.n_epochs):
    for i, (real,) in enumerate(loader):
        # ---- critic
        optimizer_C.zero_grad()
        z = torch.randn(real.size(0), opt.latent_dim)
        fake = generator(z).detach()
        loss_C = -torch.mean(critic(real)) + torch.mean(critic(fake))
        loss_C.backward()
        optimizer_C.step()
        for p in critic.parameters():
            p.data.clamp_(-opt.clip_value, opt.clip_value)
        # ---- generator, once in n_critic steps
        if i % opt.n_critic == 0:
            optimizer_G.zero_grad()
            loss_G = -torch.mean(critic(generator(z)))
            loss_G.backward()
            optimizer_G.step()
            batches_done += 1
    if epoch % 5 == 0:
        print(f"[Epoch {epoch}/{opt.n_epochs}] [C loss {loss_C.item():.4f}] [G loss {loss_G.item():.4f}]")
with torch.no_grad():
    end = sliced_wasserstein(generator(torch.randn(2000, opt.latent_dim)), cloud[:2000])
print(f"generator updates {batches_done}; sliced Wasserstein: first {start:.3f} last {end:.3f}")
