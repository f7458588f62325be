"""Advantage actor critic with a rollout storage (Kostrikov style) on eight parallel games of catch."""
import torch
import torch.nn as nn
import torch.nn.functional as F

W = 5  # width and height of the board
N_ENVS, N_STEPS, UPDATES = 16, 10, 250
GAMMA, VALUE_COEF, ENT_COEF = 0.95, 0.5, 0.01


class VecCatch:
    def __init__(self, n):
        self.n = n
        self.ball_x = torch.randint(0, W, (n,))
        self.ball_y = torch.randint(0, W - 1, (n,))
        self.pad = torch.randint(0, W, (n,))

    def obs(self):
        return torch.cat([F.one_hot(self.ball_x, W), F.one_hot(self.ball_y, W), F.one_hot(self.pad, W)], 1).float()

    def step(self, action):
        self.pad = (self.pad + action - 1).clamp(0, W - 1)
        self.ball_y = self.ball_y + 1
        done = self.ball_y == W - 1
        reward = torch.where(done, torch.where(self.ball_x == self.pad, 1.0, -1.0), torch.zeros(self.n))
        self.ball_x = torch.where(done, torch.randint(0, W, (self.n,)), self.ball_x)
        self.pad = torch.where(done, torch.randint(0, W, (self.n,)), self.pad)
        self.ball_y = torch.where(done, torch.zeros_like(self.ball_y), self.ball_y)
        return self.obs(), reward, done


class RolloutStorage:
    def __init__(self, t, n, dim):
        self.obs = torch.zeros(t + 1, n, dim)
        self.actions = torch.zeros(t, n, dtype=torch.long)
        self.rewards = torch.zeros(t, n)
        self.masks = torch.ones(t, n)
        self.returns = torch.zeros(t + 1, n)

    def compute_returns(self, next_value, gamma):
        self.returns[-1] = next_value
        for step in reversed(range(self.rewards.size(0))):
            self.returns[step] = self.rewards[step] + gamma * self.returns[step + 1] * self.masks[step]


class ActorCritic(nn.Module):
    def __init__(self, dim, n_actions):
        super().__init__()
        self.base = nn.Sequential(nn.Linear(dim, 64), nn.Tanh())
        self.actor, self.critic = nn.Linear(64, n_actions), nn.Linear(64, 1)

    def forward(self, x):
        h = self.base(x)
        return torch.distributions.Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)


def main():
    torch.manual_seed(7)
    envs, agent = VecCatch(N_ENVS), ActorCritic(3 * W, 3)
    optimizer = torch.optim.RMSprop(agent.parameters(), lr=3e-3, alpha=0.99, eps=1e-5)
    storage = RolloutStorage(N_STEPS, N_ENVS, 3 * W)
    storage.obs[0] = envs.obs()
    scores = []
    for update in range(UPDATES):
        for step in range(N_STEPS):
            with torch.no_grad():
                dist, _ = agent(storage.obs[step])
                action = dist.sample()
            obs, reward, done = envs.step(action)
            storage.obs[step + 1], storage.actions[step] = obs, action
            storage.rewards[step], storage.masks[step] = reward, (~done).float()
        with torch.no_grad():
            next_value = agent(storage.obs[-1])[1]
        storage.compute_returns(next_value, GAMMA)
        dist, values = agent(storage.obs[:-1])
        advantages = storage.returns[:-1] - values
        value_loss = advantages.pow(2).mean()
        action_loss = -(advantages.detach() * dist.log_prob(storage.actions)).mean()
        loss = value_loss * VALUE_COEF + action_loss - ENT_COEF * dist.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
        storage.obs[0].copy_(storage.obs[-1])
        scores.append((storage.rewards.sum() / (storage.masks == 0).sum().clamp(min=1)).item())
        if update % 50 == 0:
            print(f"update {update} value loss {value_loss.item():.3f} score per game {scores[-1]:+.2f}")
    print(f"score per game: first 10 updates {sum(scores[:10]) / 10:+.2f}, last 10 {sum(scores[-10:]) / 10:+.2f}")


if __name__ == "__main__":
    main()
