"""Policy gradient on a tiny corridor: walk to the door, picking the key first pays more."""
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(0)
rng = np.random.default_rng(0)


class Corridor:
    """cells 0..6, start at 3. The key is in cell 0, the door in cell 6."""

    def reset(self, start=3):
        self.pos, self.key, self.t = start, 0, 0
        return self.obs()

    def obs(self):
        o = np.zeros(8, dtype=np.float32)
        o[self.pos] = 1
        o[7] = self.key
        return o

    def step(self, a):
        self.pos = int(np.clip(self.pos + (1 if a == 1 else -1), 0, 6))
        self.t += 1
        if self.pos == 0:
            self.key = 1
        done = self.pos == 6 or self.t >= 24
        reward = -0.02
        if self.pos == 6:
            reward += 1.0 if self.key else 0.1
        return self.obs(), reward, done


policy = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
GAMMA = 0.97


def rollout(env, greedy=False, start=3):
    obs, done = env.reset(start), False
    logps, rewards, ents = [], [], []
    while not done:
        dist = Categorical(logits=policy(torch.from_numpy(obs)))
        a = dist.probs.argmax() if greedy else dist.sample()
        logps.append(dist.log_prob(a))
        ents.append(dist.entropy())
        obs, r, done = env.step(int(a))
        rewards.append(r)
    return logps, rewards, ents


def discounted(rewards):
    out, running = [], 0.0
    for r in rewards:
        running = r + GAMMA * running
        out.append(running)
    return out


env = Corridor()
for it in range(100):
    batch_logp, batch_ret, batch_ent, totals = [], [], [], []
    for _ in range(8):
        lp, rw, en = rollout(env, start=int(rng.integers(1, 6)))
        batch_logp += lp
        batch_ent += en
        batch_ret += discounted(rw)
        totals.append(sum(rw))
    ret = torch.tensor(batch_ret)
    adv = (ret - ret.mean()) / (ret.std() + 1e-6)
    loss = -(torch.stack(batch_logp) * adv).mean() - 0.01 * torch.stack(batch_ent).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if it % 20 == 19:
        print(f"iteration {it + 1:3d}  mean reward of the batch {np.mean(totals):.3f}")

with torch.no_grad():
    result = [sum(rollout(env, greedy=False, start=s)[1]) for s in range(1, 6) for _ in range(20)]
print(f"evaluation over all starts: mean reward {np.mean(result):.3f}")
