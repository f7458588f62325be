"""REINFORCE on a hand-written cart-pole, after pytorch/examples."""
import math
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions import Categorical


class CartPole:
    def __init__(self, max_steps=100):
        self.max_steps = max_steps

    def reset(self):
        self.s = [random.uniform(-0.05, 0.05) for _ in range(4)]
        self.t = 0
        return list(self.s)

    def step(self, action):
        x, xd, th, thd = self.s
        force = 10.0 if action == 1 else -10.0
        tmp = (force + 0.05 * thd ** 2 * math.sin(th)) / 1.1
        thacc = (9.8 * math.sin(th) - math.cos(th) * tmp) / (0.5 * (4 / 3 - 0.1 * math.cos(th) ** 2 / 1.1))
        xacc = tmp - 0.05 * thacc * math.cos(th) / 1.1
        self.s = [x + 0.02 * xd, xd + 0.02 * xacc, th + 0.02 * thd, thd + 0.02 * thacc]
        self.t += 1
        done = abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.2095 or self.t >= self.max_steps
        return list(self.s), 1.0, done


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 64)
        self.affine2 = nn.Linear(64, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        return torch.softmax(self.affine2(torch.relu(self.affine1(x))), dim=-1)


random.seed(1)
torch.manual_seed(1)
gamma, eps = 0.99, np.finfo(np.float32).eps.item()
env = CartPole()
policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=6e-3)


def select_action(state):
    probs = policy(torch.tensor(state))
    m = Categorical(probs)
    action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item()


def finish_episode():
    R, returns = 0.0, deque()
    for r in policy.rewards[::-1]:
        R = r + gamma * R
        returns.appendleft(R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    policy_loss = []
    for log_prob, R in zip(policy.saved_log_probs, returns):
        policy_loss.append(-log_prob * R)
    optimizer.zero_grad()
    loss = torch.stack(policy_loss).sum()
    loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]


history = []
for i_episode in range(220):
    state, ep_reward, done = env.reset(), 0.0, False
    while not done:
        state, reward, done = env.step(select_action(state))
        policy.rewards.append(reward)
        ep_reward += reward
    history.append(ep_reward)
    finish_episode()
    if i_episode % 20 == 0:
        print(f"Episode {i_episode}\tLast reward: {ep_reward:.1f}\tAvg(20): {np.mean(history[-20:]):.1f}")
print(f"first 20 episodes: {np.mean(history[:20]):.1f}  last 20 episodes: {np.mean(history[-20:]):.1f}")
