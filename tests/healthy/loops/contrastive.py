"""SimCLR on digits: two noisy, shifted views of a picture attract each other; a linear probe at the end."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch.utils.data import DataLoader

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
images = torch.tensor(X / 16, dtype=torch.float32).view(-1, 8, 8)


def augment(x):
    dx, dy = (int(v) for v in torch.randint(-1, 2, (2,)))
    x = torch.roll(x, (dy, dx), dims=(1, 2))
    return (x + 0.15 * torch.randn_like(x)) * (torch.rand_like(x) > 0.1)


def nt_xent(z1, z2, temperature=0.3):
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    sim = z @ z.t() / temperature
    sim = sim.masked_fill(torch.eye(len(z), dtype=torch.bool), float("-inf"))
    n = len(z1)
    targets = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(sim, targets)


encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
projector = nn.Sequential(nn.ReLU(), nn.Linear(64, 32))
params = list(encoder.parameters()) + list(projector.parameters())
optimizer = torch.optim.Adam(params, lr=1e-3)
loader = DataLoader(images[:1400], batch_size=100, shuffle=True, drop_last=True)
for epoch in range(12):
    total = 0.0
    for x in loader:
        loss = nt_xent(projector(encoder(augment(x))), projector(encoder(augment(x))))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: contrastive loss {total / len(loader):.3f}")
with torch.no_grad():
    h = encoder(images).numpy()
probe = LogisticRegression(max_iter=300).fit(h[:1400], y[:1400])
print("linear probe", probe.score(h[1400:], y[1400:]))
