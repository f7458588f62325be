"""Three quantiles of a noisy signal at once; non-crossing by construction; checks coverage."""
import numpy as np
import torch
from torch import nn

SEED = 0
QS = torch.tensor([.1, .5, .9])


def draw(n, rng):
    x = rng.uniform(-3, 3, (n, 2))
    centre = np.sin(2 * x[:, 0]) + .5 * x[:, 1]
    spread = .15 + .35 * (x[:, 1] > 0) + .1 * np.abs(x[:, 0])
    y = centre + spread * (rng.exponential(1, n) - .69)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


class Quantiles(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 3))

    def forward(self, x):
        mid, down, up = self.net(x).unbind(1)
        sp = nn.functional.softplus
        return torch.stack([mid - sp(down), mid, mid + sp(up)], 1)


def pinball(q, y):
    e = y[:, None] - q
    return torch.maximum(QS * e, (QS - 1) * e).mean()


def report(tag, q, y):
    below = (y[:, None] < q).float().mean(0)
    print(f"{tag} pinball {pinball(q, y):.4f} share below each quantile {[round(v, 3) for v in below.tolist()]}")


rng = np.random.default_rng(SEED)
torch.manual_seed(SEED)
xa, ya = draw(4000, rng)
xb, yb = draw(2000, rng)
flat = torch.quantile(ya, QS).expand(len(yb), 3)
report("unconditional quantiles:", flat, yb)
model = Quantiles()
opt = torch.optim.Adam(model.parameters(), 3e-3)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 5e-3, total_steps=1600)
avg = torch.optim.swa_utils.AveragedModel(model)
for step in range(1600):
    i = torch.randint(len(xa), (256,))
    loss = pinball(model(xa[i]), ya[i])
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if step >= 1300:
        avg.update_parameters(model)
    if step % 400 == 399:
        with torch.no_grad():
            report(f"step {step + 1}: train {loss.item():.4f} test", model(xb), yb)
with torch.no_grad():
    q = avg(xb)
report("averaged weights:", q, yb)
print(f"80% interval covers {((yb > q[:, 0]) & (yb < q[:, 2])).float().mean():.3f}")
