# verdict: cannot be judged
# finds: nothing
# A flow is fitted to a density: the loss is the mean of one term minus another, and no row has a label.
import torch
from torch import nn

torch.manual_seed(0)
base = torch.distributions.Normal(0.0, 1.0)


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 2))
        self.first = nn.Parameter(torch.zeros(2))

    def forward(self, z):
        shift, scale = self.net(z[:, :1]).unbind(1)
        x = torch.stack([z[:, 0] * torch.exp(self.first[1]) + self.first[0], z[:, 1] * torch.exp(scale) + shift], 1)
        return x, self.first[1] + scale


def energy(x):
    return 0.5 * ((x[:, 0] - 1) ** 2 + ((x[:, 1] - x[:, 0] ** 2) / 0.5) ** 2)


flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=0.01)
for step in range(400):
    z = torch.randn(200, 2)
    x, log_scale = flow(z)
    loss = (base.log_prob(z).sum(1) - log_scale).mean() + energy(x).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        with torch.no_grad():
            z = torch.randn(800, 2)
            x, log_scale = flow(z)
            print(step, "divergence", (base.log_prob(z).sum(1) - log_scale + energy(x)).mean().item())
