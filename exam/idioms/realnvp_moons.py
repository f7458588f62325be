"""RealNVP on the two moons."""
import torch
from torch import nn
from sklearn.datasets import make_moons


class Coupling(nn.Module):
    def __init__(self, mask, hidden=48):
        super().__init__()
        self.register_buffer("mask", mask)
        self.s = nn.Sequential(nn.Linear(2, hidden), nn.LeakyReLU(), nn.Linear(hidden, hidden), nn.LeakyReLU(), nn.Linear(hidden, 2), nn.Tanh())
        self.t = nn.Sequential(nn.Linear(2, hidden), nn.LeakyReLU(), nn.Linear(hidden, hidden), nn.LeakyReLU(), nn.Linear(hidden, 2))

    def forward(self, z):          # z -> x
        z_ = z * self.mask
        s, t = self.s(z_) * (1 - self.mask), self.t(z_) * (1 - self.mask)
        return z_ + (1 - self.mask) * (z * s.exp() + t)

    def inverse(self, x):          # x -> z
        x_ = x * self.mask
        s, t = self.s(x_) * (1 - self.mask), self.t(x_) * (1 - self.mask)
        return x_ + (1 - self.mask) * ((x - t) * (-s).exp()), -s.sum(1)


class RealNVP(nn.Module):
    def __init__(self, n_layers=6):
        super().__init__()
        masks = [torch.tensor([float(i % 2), float((i + 1) % 2)]) for i in range(n_layers)]
        self.layers = nn.ModuleList(Coupling(m) for m in masks)
        self.register_buffer("loc", torch.zeros(2))
        self.register_buffer("cov", torch.eye(2))

    @property
    def prior(self):
        return torch.distributions.MultivariateNormal(self.loc, self.cov)

    def log_prob(self, x):
        log_det = x.new_zeros(x.shape[0])
        for layer in reversed(self.layers):
            x, ld = layer.inverse(x)
            log_det = log_det + ld
        return self.prior.log_prob(x) + log_det

    @torch.no_grad()
    def sample(self, n):
        x = self.prior.sample((n,))
        for layer in self.layers:
            x = layer(x)
        return x


torch.manual_seed(0)
X, _ = make_moons(3000, noise=0.06, random_state=0)
X = torch.tensor((X - X.mean(0)) / X.std(0), dtype=torch.float32)
train, valid = X[:2500], X[2500:]
flow = RealNVP()
optimizer = torch.optim.Adam(flow.parameters(), lr=1e-3, weight_decay=1e-5)

for it in range(401):
    batch = train[torch.randint(0, len(train), (256,))]
    loss = -flow.log_prob(batch).mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
    optimizer.step()
    if it % 100 == 0:
        with torch.no_grad():
            val = -flow.log_prob(valid).mean()
        print(f"iter {it:4d} train nll {loss.item():.3f} valid nll {val.item():.3f}")

samples = flow.sample(500)
near = torch.cdist(samples, train).min(1).values
print(f"mean distance of a sample to the data: {near.mean().item():.3f}")
