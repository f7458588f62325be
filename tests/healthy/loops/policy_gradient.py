"""REINFORCE on a corridor: walk to the goal from either side; no data set and no loader."""

import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(0)


class Corridor:
    """Nine cells, the goal in the middle; +1 for reaching it, -0.05 a step."""

    def reset(self):
        self.position, self.steps = int(torch.randint(0, 9, ())), 0
        return self.observe()

    def observe(self):
        return nn.functional.one_hot(torch.tensor(self.position), 9).float()

    def step(self, action):
        self.position = max(0, min(8, self.position + (1 if action == 1 else -1)))
        self.steps += 1
        done = self.position == 4
        return self.observe(), 1.0 if done else -0.05, done or self.steps >= 20


policy = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
env, gamma, lengths = Corridor(), 0.95, []

for episode in range(400):
    state, done, log_probs, rewards = env.reset(), False, [], []
    while not done:
        dist = Categorical(logits=policy(state))
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        state, reward, done = env.step(action.item())
        rewards.append(reward)
    returns, R = [], 0.0
    for r in reversed(rewards):
        R = r + gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    policy_loss = -(torch.stack(log_probs) * (returns - 0.3)).sum()
    optimizer.zero_grad()
    policy_loss.backward()
    optimizer.step()
    lengths.append(len(rewards))
    if episode % 100 == 99:
        print(f"episode {episode + 1}: {sum(lengths[-100:]) / 100:.2f} steps to the goal")
