# tiny DDPM on a two-dimensional ring
import math
from itertools import islice

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

torch.manual_seed(0)

T = 50
betas = torch.linspace(1e-3, 0.15, T)
alphas = 1.0 - betas
alphas_bar = torch.cumprod(alphas, dim=0)

theta = torch.rand(2000) * 2 * math.pi
ring = torch.stack([theta.cos(), theta.sin()], dim=1) * 1.2 + 0.03 * torch.randn(2000, 2)


def cycle(dl):
    while True:
        for data in dl:
            yield data


class Denoiser(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.time = nn.Embedding(T, 32)
        self.net = nn.Sequential(nn.Linear(2 + 32, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 2))

    def forward(self, x, t):
        return self.net(torch.cat([x, self.time(t)], dim=-1))


def q_sample(x0, t, noise):
    ab = alphas_bar[t].unsqueeze(-1)
    return ab.sqrt() * x0 + (1 - ab).sqrt() * noise


def p_losses(model, x0):
    t = torch.randint(0, T, (x0.shape[0],))
    noise = torch.randn_like(x0)
    predicted = model(q_sample(x0, t, noise), t)
    return F.mse_loss(predicted, noise)


@torch.no_grad()
def sample(model, n):
    x = torch.randn(n, 2)
    for i in reversed(range(T)):
        eps = model(x, torch.full((n,), i))
        x = (x - betas[i] / (1 - alphas_bar[i]).sqrt() * eps) / alphas[i].sqrt()
        if i > 0:
            x = x + betas[i].sqrt() * torch.randn_like(x)
    return x


model = Denoiser()
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
dl = DataLoader(ring, batch_size=200, shuffle=True)

losses = []
for step, batch in enumerate(islice(cycle(dl), 1000)):
    loss = p_losses(model, batch)
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())

model.eval()
radius_error = (sample(model, 500).norm(dim=1) - 1.2).abs().mean().item()
print(f"loss: first {losses[0]:.4f} last {sum(losses[-50:]) / 50:.4f}; mean radius error of samples {radius_error:.3f}")
