# Double DQN on a sparse maze. The only reward is at the exit.
import random
from collections import deque, namedtuple
import torch
from torch import nn

MAZE = ["S.#....",
        ".#.....",
        "...##..",
        ".#....#",
        ".#.#..G"]
ROWS, COLS = len(MAZE), len(MAZE[0])
Transition = namedtuple("Transition", "state action reward next_state done")
torch.manual_seed(0)
random.seed(0)


def encode(pos):
    v = torch.zeros(ROWS * COLS)
    v[pos[0] * COLS + pos[1]] = 1.0
    return v


def env_step(pos, a):
    r, c = pos[0] + (-1, 1, 0, 0)[a], pos[1] + (0, 0, -1, 1)[a]
    if not (0 <= r < ROWS and 0 <= c < COLS) or MAZE[r][c] == "#":
        r, c = pos
    goal = MAZE[r][c] == "G"
    return (r, c), float(goal), goal


class DuelingNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(ROWS * COLS, 64), nn.ReLU())
        self.v, self.a = nn.Linear(64, 1), nn.Linear(64, 4)

    def forward(self, x):
        h = self.body(x)
        a = self.a(h)
        return self.v(h) + a - a.mean(1, keepdim=True)


online, target = DuelingNet(), DuelingNet()
target.load_state_dict(online.state_dict())
for p in target.parameters():
    p.requires_grad_(False)
opt = torch.optim.Adam(online.parameters(), lr=2e-3)
memory = deque(maxlen=4000)
BATCH, GAMMA, SYNC = 64, 0.95, 50
steps, lengths = 0, []

for episode in range(120):
    eps = max(0.05, 1.0 - episode / 60)
    pos, done, t = (0, 0), False, 0
    while not done and t < 80:
        s = encode(pos)
        if random.random() < eps:
            a = random.randint(0, 3)
        else:
            with torch.no_grad():
                a = online(s[None]).argmax(1).item()
        pos, r, done = env_step(pos, a)
        memory.append(Transition(s, a, r, encode(pos), done))
        steps, t = steps + 1, t + 1
        if len(memory) < BATCH or steps % 2:
            continue
        batch = Transition(*zip(*random.sample(memory, BATCH)))
        state, nxt = torch.stack(batch.state), torch.stack(batch.next_state)
        action = torch.tensor(batch.action).unsqueeze(1)
        reward = torch.tensor(batch.reward)
        nonterminal = 1.0 - torch.tensor(batch.done, dtype=torch.float)
        q = online(state).gather(1, action).squeeze(1)
        with torch.no_grad():
            best = online(nxt).argmax(1, keepdim=True)
            y = reward + GAMMA * nonterminal * target(nxt).gather(1, best).squeeze(1)
        loss = nn.functional.smooth_l1_loss(q, y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(online.parameters(), 10.0)
        opt.step()
        if steps % SYNC == 0:
            target.load_state_dict(online.state_dict())
    lengths.append(t)
    if episode % 20 == 0:
        print(f"episode {episode:3d} eps {eps:.2f} steps to exit {t}")

print("mean length first 20:", sum(lengths[:20]) / 20, " last 20:", sum(lengths[-20:]) / 20)
