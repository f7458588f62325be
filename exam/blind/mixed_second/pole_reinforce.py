"""REINFORCE with a learned baseline on a hand-written cart-pole, many carts in parallel."""
import math
import torch
from torch import nn

SEED = 0
torch.manual_seed(SEED)
N, HORIZON, GAMMA = 24, 150, .98


class Carts:
    """Vectorised cart-pole; a cart that has fallen stays fallen and earns nothing."""

    def __init__(self, n):
        self.n = n

    def reset(self):
        self.s = (torch.rand(self.n, 4) - .5) * .1
        self.alive = torch.ones(self.n)
        return self.s

    def step(self, a):
        x, v, th, w = self.s.unbind(1)
        f = torch.where(a == 1, 10., -10.)
        tmp = (f + .05 * w ** 2 * th.sin()) / 1.1
        acc = (9.8 * th.sin() - th.cos() * tmp) / (.5 * (4 / 3 - .1 * th.cos() ** 2 / 1.1))
        xacc = tmp - .05 * acc * th.cos() / 1.1
        self.s = torch.stack([x + .02 * v, v + .02 * xacc, th + .02 * w, w + .02 * acc], 1)
        ok = (self.s[:, 0].abs() < 2.4) & (self.s[:, 2].abs() < 12 * math.pi / 180)
        reward = self.alive.clone()
        self.alive = self.alive * ok.float()
        return self.s, reward, self.alive


policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
value = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
opt = torch.optim.Adam([{"params": policy.parameters(), "lr": 1e-2}, {"params": value.parameters(), "lr": 1e-2}])
scale = torch.tensor([1., 1., 8., 2.])


def play(env, greedy=False):
    s, alive = env.reset(), torch.ones(env.n)
    S, A, R, M = [], [], [], []
    with torch.no_grad():
        for _ in range(HORIZON):
            logits = policy(s * scale)
            a = logits.argmax(1) if greedy else torch.distributions.Categorical(logits=logits).sample()
            S.append(s), A.append(a), M.append(alive)
            s, r, alive = env.step(a)
            R.append(r)
    return torch.stack(S), torch.stack(A), torch.stack(R), torch.stack(M)


env = Carts(N)
print(f"untrained greedy length {play(Carts(200), True)[2].sum(0).mean():.1f}")
for it in range(1, 61):
    S, A, R, M = play(env)
    G, g = torch.zeros_like(R), torch.zeros(N)
    for t in range(HORIZON - 1, -1, -1):
        g = R[t] + GAMMA * g
        G[t] = g
    V = value(S * scale).squeeze(-1)
    adv = (G - V).detach()
    adv = (adv - adv[M > 0].mean()) / (adv[M > 0].std() + 1e-6)
    logp = torch.distributions.Categorical(logits=policy(S * scale)).log_prob(A)
    loss = -(logp * adv * M).sum() / M.sum() + .01 * ((V - G) ** 2 * M).sum() / M.sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 12 == 0:
        print(f"iteration {it} mean return {R.sum(0).mean():.1f} loss {loss.item():.3f}")
print(f"greedy length on 200 fresh carts {play(Carts(200), True)[2].sum(0).mean():.1f} of {HORIZON}")
