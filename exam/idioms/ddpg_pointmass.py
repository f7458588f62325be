"""DDPG (Spinning Up flavoured) on a point mass that must come to rest at the origin."""
import copy
import numpy as np
import torch
import torch.nn as nn


def mlp(sizes, activation, output_activation=nn.Identity):
    layers = []
    for j in range(len(sizes) - 1):
        act = activation if j < len(sizes) - 2 else output_activation
        layers += [nn.Linear(sizes[j], sizes[j + 1]), act()]
    return nn.Sequential(*layers)


class MLPActorCritic(nn.Module):
    def __init__(self, obs_dim=2, act_dim=1, hidden=(64, 64)):
        super().__init__()
        self.pi = mlp([obs_dim, *hidden, act_dim], nn.ReLU, nn.Tanh)
        self.q = mlp([obs_dim + act_dim, *hidden, 1], nn.ReLU)

    def q_value(self, obs, act):
        return self.q(torch.cat([obs, act], -1)).squeeze(-1)


class PointMass:
    def reset(self):
        self.x, self.v, self.t = np.random.uniform(-1, 1), 0.0, 0
        return np.array([self.x, self.v], dtype=np.float32)

    def step(self, a):
        self.v = float(np.clip(self.v + 0.2 * float(a), -1, 1))
        self.x = float(np.clip(self.x + 0.2 * self.v, -2, 2))
        self.t += 1
        r = -(self.x ** 2 + 0.1 * self.v ** 2 + 0.01 * float(a) ** 2)
        return np.array([self.x, self.v], dtype=np.float32), r, self.t >= 40


def evaluate(env, ac, episodes=10):
    total = 0.0
    for _ in range(episodes):
        o, d = env.reset(), False
        while not d:
            with torch.no_grad():
                a = ac.pi(torch.as_tensor(o)).item()
            o, r, d = env.step(a)
            total += r
    return total / episodes


def ddpg(seed=0, steps=2400, gamma=0.95, polyak=0.98, lr=1e-3, batch_size=64, start_steps=400, act_noise=0.2):
    torch.manual_seed(seed)
    np.random.seed(seed)
    env, test_env, ac = PointMass(), PointMass(), MLPActorCritic()
    ac_targ = copy.deepcopy(ac)
    for p in ac_targ.parameters():
        p.requires_grad = False
    pi_optimizer = torch.optim.Adam(ac.pi.parameters(), lr=lr)
    q_optimizer = torch.optim.Adam(ac.q.parameters(), lr=lr)
    buf = {k: np.zeros((steps, n), np.float32) for k, n in (("o", 2), ("a", 1), ("r", 1), ("o2", 2))}
    first = evaluate(test_env, ac)
    o = env.reset()
    for t in range(steps):
        if t < start_steps:
            a = np.random.uniform(-1, 1)
        else:
            with torch.no_grad():
                a = np.clip(ac.pi(torch.as_tensor(o)).item() + act_noise * np.random.randn(), -1, 1)
        o2, r, d = env.step(a)
        buf["o"][t], buf["a"][t], buf["r"][t], buf["o2"][t] = o, a, r, o2
        o = env.reset() if d else o2
        if t < start_steps:
            continue
        idx = np.random.randint(0, t + 1, size=batch_size)
        b = {k: torch.as_tensor(v[idx]) for k, v in buf.items()}
        # time limits are not terminal states, so the backup always bootstraps
        q_optimizer.zero_grad()
        with torch.no_grad():
            backup = b["r"].squeeze(-1) + gamma * ac_targ.q_value(b["o2"], ac_targ.pi(b["o2"]))
        loss_q = ((ac.q_value(b["o"], b["a"]) - backup) ** 2).mean()
        loss_q.backward()
        q_optimizer.step()
        for p in ac.q.parameters():
            p.requires_grad = False
        pi_optimizer.zero_grad()
        loss_pi = -ac.q_value(b["o"], ac.pi(b["o"])).mean()
        loss_pi.backward()
        pi_optimizer.step()
        for p in ac.q.parameters():
            p.requires_grad = True
        with torch.no_grad():
            for p, p_targ in zip(ac.parameters(), ac_targ.parameters()):
                p_targ.mul_(polyak).add_((1 - polyak) * p)
        if t % 400 == 0:
            print(f"step {t} LossQ {loss_q.item():.4f} LossPi {loss_pi.item():.3f}")
    print(f"return before {first:.2f} after {evaluate(test_env, ac):.2f}")


if __name__ == "__main__":
    ddpg()
