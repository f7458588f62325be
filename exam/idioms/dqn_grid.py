import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

@dataclass
class Args:
    seed: int = 3
    total_timesteps: int = 5000
    learning_rate: float = 1e-3
    buffer_size: int = 5000
    gamma: float = 0.97
    target_network_frequency: int = 100
    batch_size: int = 64
    start_e: float = 1.0
    end_e: float = 0.05
    exploration_fraction: float = 0.5
    learning_starts: int = 300
    train_frequency: int = 2

class Cliff:
    """4 x 6 cliff walk; state is the one-hot cell."""
    H, W = 4, 6

    def obs(self):
        o = np.zeros(self.H * self.W, dtype=np.float32)
        o[self.r * self.W + self.c] = 1
        return o

    def reset(self):
        self.r, self.c, self.t = 3, 0, 0
        return self.obs()

    def step(self, a):
        dr, dc = [(-1, 0), (0, 1), (1, 0), (0, -1)][a]
        self.r = min(max(self.r + dr, 0), self.H - 1)
        self.c = min(max(self.c + dc, 0), self.W - 1)
        self.t += 1
        if self.r == 3 and 0 < self.c < self.W - 1:
            return self.obs(), -1.0, True, False
        if self.r == 3 and self.c == self.W - 1:
            return self.obs(), 1.0, True, False
        return self.obs(), -0.02, False, self.t >= 50

class ReplayBuffer:
    def __init__(self, size, obs_dim):
        self.obs = np.zeros((size, obs_dim), np.float32)
        self.next_obs = np.zeros((size, obs_dim), np.float32)
        self.actions = np.zeros((size, 1), np.int64)
        self.rewards = np.zeros(size, np.float32)
        self.dones = np.zeros(size, np.float32)
        self.size, self.pos, self.n = size, 0, 0

    def add(self, o, o2, a, r, d):
        i = self.pos
        self.obs[i], self.next_obs[i], self.actions[i], self.rewards[i], self.dones[i] = o, o2, a, r, d
        self.pos = (i + 1) % self.size
        self.n = min(self.n + 1, self.size)

    def __len__(self):
        return self.n

    def sample(self, k):
        idx = np.random.randint(0, self.n, size=k)
        return [torch.from_numpy(x[idx]) for x in (self.obs, self.next_obs, self.actions, self.rewards, self.dones)]

def linear_schedule(start_e, end_e, duration, t):
    return max((end_e - start_e) / duration * t + start_e, end_e)

args = Args()
random.seed(args.seed), np.random.seed(args.seed), torch.manual_seed(args.seed)
env, rb = Cliff(), ReplayBuffer(args.buffer_size, 24)
make = lambda: nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 4))
q_network, target_network = make(), make()
target_network.load_state_dict(q_network.state_dict())
optimizer = torch.optim.Adam(q_network.parameters(), lr=args.learning_rate)

obs, returns, ep_ret = env.reset(), [], 0.0
for global_step in range(args.total_timesteps):
    epsilon = linear_schedule(args.start_e, args.end_e, args.exploration_fraction * args.total_timesteps, global_step)
    if random.random() < epsilon:
        action = random.randrange(4)
    else:
        with torch.no_grad():
            action = q_network(torch.from_numpy(obs)).argmax().item()
    next_obs, reward, terminated, truncated = env.step(action)
    rb.add(obs, next_obs, action, reward, terminated)
    ep_ret, obs = ep_ret + reward, next_obs
    if terminated or truncated:
        returns.append(ep_ret)
        obs, ep_ret = env.reset(), 0.0
    if len(rb) < args.batch_size:
        continue
    if global_step > args.learning_starts and global_step % args.train_frequency == 0:
        b_obs, b_next, b_act, b_rew, b_done = rb.sample(args.batch_size)
        with torch.no_grad():
            target_max, _ = target_network(b_next).max(dim=1)
            td_target = b_rew + args.gamma * target_max * (1 - b_done)
        old_val = q_network(b_obs).gather(1, b_act).squeeze(1)
        loss = F.mse_loss(td_target, old_val)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if global_step % args.target_network_frequency == 0:
            target_network.load_state_dict(q_network.state_dict())
        if global_step % 1000 == 0:
            print(f"step {global_step} loss {loss.item():.4f} return {np.mean(returns[-20:]):.3f}")
print(f"episodic return: first 20 {np.mean(returns[:20]):.3f} last 20 {np.mean(returns[-20:]):.3f}")
