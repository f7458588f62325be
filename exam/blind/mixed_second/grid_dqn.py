"""DQN on a small grid with walls; reach the far corner."""
import random
from collections import deque
import numpy as np
import torch
from torch import nn

SEED = 0
WALLS = {(1, 1), (1, 2), (1, 3), (3, 1), (3, 2), (3, 4), (2, 4)}
SIZE, LIMIT = 6, 40
MOVES = [(-1, 0), (1, 0), (0, -1), (0, 1)]


class Grid:
    """Observation: agent's row and column."""

    def reset(self, random_start=False):
        self.pos = np.zeros(2, dtype=np.float32)
        while random_start:
            self.pos[:] = np.random.randint(0, SIZE, 2)
            if tuple(self.pos.astype(int)) not in WALLS and tuple(self.pos) != (SIZE - 1, SIZE - 1):
                break
        self.t = 0
        return self.pos

    def step(self, a):
        self.t += 1
        r, c = self.pos[0] + MOVES[a][0], self.pos[1] + MOVES[a][1]
        if 0 <= r < SIZE and 0 <= c < SIZE and (int(r), int(c)) not in WALLS:
            self.pos[0] = r
            self.pos[1] = c
        goal = bool((self.pos == SIZE - 1).all())
        return self.pos, (1.0 if goal else -0.02), goal, self.t >= LIMIT


def encode(obs):
    o = torch.as_tensor(np.asarray(obs)).long()
    return torch.cat([nn.functional.one_hot(o[..., 0], SIZE), nn.functional.one_hot(o[..., 1], SIZE)], -1).float()


def greedy(q, env, episodes=50):
    wins = 0
    with torch.no_grad():
        for _ in range(episodes):
            s = env.reset(random_start=True)
            goal = stop = False
            while not (goal or stop):
                s, _, goal, stop = env.step(q(encode(s)).argmax().item())
            wins += goal
    return wins / episodes


def main():
    random.seed(SEED); np.random.seed(SEED); torch.manual_seed(SEED)
    mk = lambda: nn.Sequential(nn.Linear(2 * SIZE, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
    q, target = mk(), mk()
    target.load_state_dict(q.state_dict())
    opt = torch.optim.Adam(q.parameters(), 1e-3)
    replay = deque(maxlen=10000)
    env, gamma, steps = Grid(), .95, 5000
    s, returns, ret = env.reset(True), [], 0.0
    losses = deque(maxlen=300)
    for step in range(1, steps + 1):
        eps = max(.1, 1 - step / 3000)
        with torch.no_grad():
            a = random.randrange(4) if random.random() < eps else q(encode(s)).argmax().item()
        s2, r, done, cut = env.step(a)
        replay.append((s, a, r, s2, float(done)))
        s, ret = s2, ret + r
        if done or cut:
            returns.append(ret)
            s, ret = env.reset(True), 0.0
        if len(replay) > 300 and step % 2 == 0:
            S, A, R, S2, D = zip(*random.sample(replay, 64))
            with torch.no_grad():
                y = torch.tensor(R) + gamma * (1 - torch.tensor(D)) * target(encode(np.stack(S2))).max(1).values
            pred = q(encode(np.stack(S))).gather(1, torch.tensor(A)[:, None])[:, 0]
            loss = nn.functional.smooth_l1_loss(pred, y)
            opt.zero_grad(); loss.backward(); opt.step()
            losses.append(loss.item())
        if step % 200 == 0:
            target.load_state_dict(q.state_dict())
        if step % 1000 == 0:
            print(f"step {step} eps {eps:.2f} loss {np.mean(losses):.4f} mean return {np.mean(returns[-30:]):.3f}")
    print(f"greedy success rate from random starts: {greedy(q, Grid()):.2f}")


if __name__ == "__main__":
    main()
