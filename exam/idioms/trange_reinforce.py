"""REINFORCE on a little corridor: walk right to the goal. One step costs 0.05, the goal pays 1."""
import random

import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions import Categorical
from tqdm import trange

SEED = 3
random.seed(SEED)
torch.manual_seed(SEED)


class Corridor:
    length = 6
    limit = 20

    def reset(self):
        self.pos, self.t = 2, 0
        return self._obs()

    def _obs(self):
        o = torch.zeros(self.length + 1)
        o[self.pos] = 1.0
        return o

    def step(self, action):
        self.t += 1
        self.pos = max(0, self.pos + (1 if action == 1 else -1))
        done = self.pos == self.length or self.t >= self.limit
        reward = 1.0 if self.pos == self.length else -0.05
        return self._obs(), reward, done


policy = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
env = Corridor()
gamma = 0.98
baseline = 0.0

episode_returns = []
t = trange(200)
for episode in t:
    log_probs, rewards = [], []
    obs, done = env.reset(), False
    while not done:
        dist = Categorical(logits=policy(obs))
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        obs, reward, done = env.step(action.item())
        rewards.append(reward)

    R, returns = 0.0, []
    for r in reversed(rewards):
        R = r + gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    advantage = returns - baseline
    baseline = 0.95 * baseline + 0.05 * returns.mean().item()

    loss = -(torch.stack(log_probs) * advantage).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

    episode_returns.append(sum(rewards))
    t.set_description(f"return {episode_returns[-1]:.2f}")

first = sum(episode_returns[:20]) / 20
last = sum(episode_returns[-20:]) / 20
print(f"mean return, first 20 episodes: {first:.3f}; last 20 episodes: {last:.3f}")
