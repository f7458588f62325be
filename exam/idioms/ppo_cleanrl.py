# docs and experiment results: PPO in one file, vectorised cart-pole in numpy
import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions.categorical import Categorical

num_envs, num_steps, num_updates = 8, 64, 30
update_epochs, num_minibatches = 4, 4
gamma, gae_lambda, clip_coef, ent_coef, vf_coef, max_grad_norm = 0.99, 0.95, 0.2, 0.01, 0.5, 0.5
batch_size = num_envs * num_steps
minibatch_size = batch_size // num_minibatches
rng = np.random.default_rng(1)
torch.manual_seed(1)


class VecCartPole:
    def __init__(self, n):
        self.n, self.s, self.t = n, rng.uniform(-0.05, 0.05, (n, 4)), np.zeros(n)

    def step(self, a):
        x, xd, th, thd = self.s.T
        f, s, c = np.where(a == 1, 10.0, -10.0), np.sin(self.s[:, 2]), np.cos(self.s[:, 2])
        tmp = (f + 0.05 * thd ** 2 * s) / 1.1
        ta = (9.8 * s - c * tmp) / (0.5 * (4 / 3 - 0.1 * c ** 2 / 1.1))
        xa = tmp - 0.05 * ta * c / 1.1
        self.s = np.stack([x + 0.02 * xd, xd + 0.02 * xa, th + 0.02 * thd, thd + 0.02 * ta], 1)
        self.t += 1
        done = (np.abs(self.s[:, 0]) > 2.4) | (np.abs(self.s[:, 2]) > 0.2095) | (self.t >= 200)
        lengths = self.t[done].tolist()
        self.s[done], self.t[done] = rng.uniform(-0.05, 0.05, (done.sum(), 4)), 0
        return self.s.copy(), np.ones(self.n), done, lengths


def layer_init(layer, std=np.sqrt(2)):
    nn.init.orthogonal_(layer.weight, std)
    nn.init.constant_(layer.bias, 0.0)
    return layer


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(4, 64)), nn.Tanh(), layer_init(nn.Linear(64, 64)), nn.Tanh(), layer_init(nn.Linear(64, 1), 1.0))
        self.actor = nn.Sequential(layer_init(nn.Linear(4, 64)), nn.Tanh(), layer_init(nn.Linear(64, 64)), nn.Tanh(), layer_init(nn.Linear(64, 2), 0.01))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


envs, agent = VecCartPole(num_envs), Agent()
optimizer = optim.Adam(agent.parameters(), lr=1e-3, eps=1e-5)
obs = torch.zeros(num_steps, num_envs, 4)
actions, logprobs, rewards, dones, values = (torch.zeros(num_steps, num_envs) for _ in range(5))
next_obs, next_done, ep_lengths = torch.tensor(envs.s).float(), torch.zeros(num_envs), []
for update in range(1, num_updates + 1):
    optimizer.param_groups[0]["lr"] = (1.0 - (update - 1.0) / num_updates) * 1e-3
    for step in range(num_steps):
        obs[step], dones[step] = next_obs, next_done
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(next_obs)
            values[step] = value.flatten()
        actions[step], logprobs[step] = action, logprob
        o, r, d, lens = envs.step(action.numpy())
        rewards[step] = torch.tensor(r)
        next_obs, next_done = torch.tensor(o).float(), torch.tensor(d).float()
        ep_lengths += lens
    with torch.no_grad():
        next_value = agent.get_value(next_obs).flatten()
        advantages, lastgaelam = torch.zeros_like(rewards), 0
        for t in reversed(range(num_steps)):
            nextnonterminal = 1.0 - (next_done if t == num_steps - 1 else dones[t + 1])
            nextvalues = next_value if t == num_steps - 1 else values[t + 1]
            delta = rewards[t] + gamma * nextvalues * nextnonterminal - values[t]
            advantages[t] = lastgaelam = delta + gamma * gae_lambda * nextnonterminal * lastgaelam
        returns = advantages + values
    b_obs, b_actions = obs.reshape(-1, 4), actions.reshape(-1).long()
    b_logprobs, b_advantages, b_returns = logprobs.reshape(-1), advantages.reshape(-1), returns.reshape(-1)
    b_inds = np.arange(batch_size)
    for epoch in range(update_epochs):
        rng.shuffle(b_inds)
        for start in range(0, batch_size, minibatch_size):
            mb_inds = b_inds[start:start + minibatch_size]
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb_inds], b_actions[mb_inds])
            ratio = (newlogprob - b_logprobs[mb_inds]).exp()
            mb_adv = b_advantages[mb_inds]
            mb_adv = (mb_adv - mb_adv.mean()) / (mb_adv.std() + 1e-8)
            pg_loss = torch.max(-mb_adv * ratio, -mb_adv * torch.clamp(ratio, 1 - clip_coef, 1 + clip_coef)).mean()
            v_loss = 0.5 * ((newvalue.view(-1) - b_returns[mb_inds]) ** 2).mean()
            loss = pg_loss - ent_coef * entropy.mean() + v_loss * vf_coef
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), max_grad_norm)
            optimizer.step()
    if update % 5 == 0:
        print(f"update {update} v_loss {v_loss.item():.2f} episode length {np.mean(ep_lengths[-20:]):.1f}")
print(f"episode length: first 20 {np.mean(ep_lengths[:20]):.1f} last 20 {np.mean(ep_lengths[-20:]):.1f}")
