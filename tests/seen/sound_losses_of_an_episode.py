# verdict: not shown
# finds: nothing
# tells: too few labels were seen to tell
# The losses of a critic for an episode of a thousand calls wait for one backward: none of them is an evaluation.
import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(critic.parameters(), lr=0.003)
for steps in (300, 700, 1400, 300, 700):
    state, values, rewards, losses = torch.randn(4), [], [], []
    for step in range(steps):
        values.append(critic(state))
        state = 0.9 * state + 0.3 * torch.randn(4)
        rewards.append(float(-state.abs().sum()))
    total, returns = 0.0, []
    for reward in reversed(rewards):
        total = reward + 0.9 * total
        returns.insert(0, total)
    for value, wanted in zip(values, torch.tensor(returns)):
        losses.append(nn.functional.smooth_l1_loss(value, wanted[None]))
    optimizer.zero_grad()
    torch.stack(losses).sum().backward()
    optimizer.step()
