# DQN in one file, on a small chain: go to the far right end, +1 there
import argparse
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--total-timesteps", type=int, default=2500)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--gamma", type=float, default=0.9)
    parser.add_argument("--target-network-frequency", type=int, default=50)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--learning-starts", type=int, default=200)
    parser.add_argument("--train-frequency", type=int, default=2)
    return parser.parse_args()


class Chain:
    n, limit = 10, 40

    def obs(self):
        o = np.zeros(self.n, dtype=np.float32)
        o[self.s] = 1
        return o

    def reset(self):
        self.s, self.t = 0, 0
        return self.obs()

    def step(self, a):
        self.t += 1
        self.s = min(self.s + 1, self.n - 1) if a == 1 else max(self.s - 1, 0)
        terminated = self.s == self.n - 1
        return self.obs(), float(terminated), terminated, self.t >= self.limit


class QNetwork(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.network = nn.Sequential(nn.Linear(n, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, x):
        return self.network(x)


def linear_schedule(start_e, end_e, duration, t):
    return max((end_e - start_e) / duration * t + start_e, end_e)


def greedy_length(q_network):
    env = Chain()
    obs, done = env.reset(), False
    while not done:
        with torch.no_grad():
            action = q_network(torch.tensor(obs)).argmax().item()
        obs, _, terminated, truncated = env.step(action)
        done = terminated or truncated
    return env.t


if __name__ == "__main__":
    args = parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    env = Chain()
    q_network, target_network = QNetwork(env.n), QNetwork(env.n)
    optimizer = optim.Adam(q_network.parameters(), lr=args.learning_rate)
    target_network.load_state_dict(q_network.state_dict())
    rb = deque(maxlen=2000)

    obs = env.reset()
    for global_step in range(args.total_timesteps):
        epsilon = linear_schedule(1.0, 0.1, 1500, global_step)
        if random.random() < epsilon:
            action = random.randrange(2)
        else:
            with torch.no_grad():
                action = q_network(torch.tensor(obs)).argmax().item()
        next_obs, reward, terminated, truncated = env.step(action)
        rb.append((obs, action, reward, next_obs, float(terminated)))
        obs = env.reset() if terminated or truncated else next_obs

        if global_step > args.learning_starts and global_step % args.train_frequency == 0:
            s, a, r, s2, d = (torch.as_tensor(np.array(v)) for v in zip(*random.sample(rb, args.batch_size)))
            with torch.no_grad():
                target_max = target_network(s2).max(dim=1).values
                td_target = r.float() + args.gamma * target_max * (1 - d.float())
            old_val = q_network(s).gather(1, a.unsqueeze(1)).squeeze(1)
            loss = F.mse_loss(td_target, old_val)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if global_step > args.learning_starts and global_step % args.target_network_frequency == 0:
            target_network.load_state_dict(q_network.state_dict())
        if global_step % 500 == 499:
            print(f"global_step={global_step} td_loss={loss.item():.5f} greedy episode length={greedy_length(q_network)}")

    truth = torch.tensor([args.gamma ** (env.n - 2 - i) for i in range(env.n - 1)])
    with torch.no_grad():
        values = q_network(torch.eye(env.n))[:-1].max(dim=1).values
    print(f"greedy length {greedy_length(q_network)} (best is 9), mean error of the values {(values - truth).abs().mean().item():.4f}")
