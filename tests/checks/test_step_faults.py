"""What only the steps of a loop show, one after another: gradients wiped, left or cut, data that end, modes and layers that
are lost; and sound loops that look like these."""

from pathlib import Path

import pytest

from checks import check_script, loud, said
from trainwright.core import Status

pytestmark = pytest.mark.slow

HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
X = torch.randn(512, 8)
W = torch.randn(8, 3)
Y = (X @ W).argmax(1)
T = X @ W[:, 0]
loader = DataLoader(TensorDataset(X, Y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
lossf = nn.CrossEntropyLoss()
"""
FAULTY = {
    "cleared between backward and step": ("wiped-accumulation", "        opt.zero_grad()", """
for epoch in range(8):
    for x, y in loader:
        lossf(model(x), y).backward()
        opt.zero_grad()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
"""),
    "cleared between the passes of one step": ("wiped-accumulation", "            opt.zero_grad()", """
for epoch in range(8):
    for x, y in loader:
        for part in range(4):
            opt.zero_grad()
            (lossf(model(x[part::4]), y[part::4]) / 4).backward()
        opt.step()
"""),
    "never cleared, but clipped": ("uncleared-gradients", "        lossf(model(x), y).backward()", """
for epoch in range(8):
    for x, y in loader:
        lossf(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        opt.step()
"""),
    "never cleared, updated by hand": ("uncleared-gradients", "        lossf(model(x), y).backward()", """
for epoch in range(8):
    for x, y in loader:
        lossf(model(x), y).backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.05 * p.grad
"""),
    "accumulated for longer than an epoch, cleared by each": ("unstepped-optimizer", "        (lossf(model(x), y) / 32).backward()", """
for epoch in range(8):
    opt.zero_grad()
    for i, (x, y) in enumerate(loader):
        (lossf(model(x), y) / 32).backward()
        if (i + 1) % 32 == 0:
            opt.step()
            opt.zero_grad()
"""),
    "cleared by the model between backward and step": ("wiped-accumulation", "        model.zero_grad()", """
for epoch in range(8):
    for x, y in loader:
        lossf(model(x), y).backward()
        model.zero_grad()
        opt.step()
"""),
    "cleared by hand in each micro-batch": ("wiped-accumulation", "        (lossf(model(x), y) / 4).backward()", """
for epoch in range(8):
    for i, (x, y) in enumerate(loader):
        for p in model.parameters():
            p.grad = None
        (lossf(model(x), y) / 4).backward()
        if (i + 1) % 4 == 0:
            opt.step()
"""),
    "updated out of place": ("unstepped-optimizer", "        lossf(model(x), y).backward()", """
for epoch in range(8):
    for x, y in loader:
        model.zero_grad()
        lossf(model(x), y).backward()
        with torch.no_grad():
            for p in model.parameters():
                p = p - 0.05 * p.grad
"""),
    "step without parentheses": ("unstepped-optimizer", "        lossf(model(x), y).backward()", """
for epoch in range(8):
    for x, y in loader:
        opt.zero_grad()
        lossf(model(x), y).backward()
        opt.step
"""),
    "frozen by the first step": ("no-gradient", "        lossf(model(x), y).backward()", """
for epoch in range(8):
    for x, y in loader:
        opt.zero_grad()
        lossf(model(x), y).backward()
        opt.step()
        for p in model.parameters():
            p.requires_grad = False
"""),
    "an iterator for all epochs": ("exhausted-data", "batches = iter(loader)", """
batches = iter(loader)
for epoch in range(8):
    for x, y in batches:
        opt.zero_grad()
        lossf(model(x), y).backward()
        opt.step()
"""),
    "a softmax before a log_softmax": ("double-activation", "        scores = model(x).softmax(1)", """
soft = nn.functional.one_hot(Y, 3).float()
loader = DataLoader(TensorDataset(X, soft), batch_size=32, shuffle=True)
for epoch in range(8):
    for x, y in loader:
        scores = model(x).softmax(1)
        loss = -(y * nn.functional.log_softmax(scores, 1)).sum(1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""),
    "rows for steps of time": ("crossed-samples", "        return self.head(self.rnn(x)[0][:, -1])", """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(1, 16)
        self.head = nn.Linear(16, 3)
    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])
model = Net(); opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(8):
    for x, y in loader:
        opt.zero_grad()
        lossf(model(x.unsqueeze(2)), y).backward()
        opt.step()
"""),
}  # fmt: skip
SOUND = {
    "an epoch's last micro-batches dropped": """
loader = DataLoader(TensorDataset(X[:200], Y[:200]), batch_size=32, shuffle=True)
for epoch in range(8):
    opt.zero_grad()
    for i, (x, y) in enumerate(loader):
        (lossf(model(x), y) / 4).backward()
        if (i + 1) % 4 == 0:
            opt.step()
            opt.zero_grad()
""",
    "an epoch's last micro-batches carried into the next": """
loader = DataLoader(TensorDataset(X[:200], Y[:200]), batch_size=32, shuffle=True)
for epoch in range(8):
    for i, (x, y) in enumerate(loader):
        (lossf(model(x), y) / 4).backward()
        if (i + 1) % 4 == 0:
            opt.step()
            opt.zero_grad()
""",
    "a window clipped by hand to a quarter": """
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(8):
    for i, (x, y) in enumerate(loader):
        (lossf(model(x), y) / 4).backward()
        if (i + 1) % 4 == 0:
            norm = float(sum(p.grad.pow(2).sum() for p in model.parameters()).sqrt())
            for p in model.parameters():
                p.grad.mul_(0.25 if norm > 0.1 else 1.0)
            opt.step()
            opt.zero_grad()
""",
    "a window divided by hand, and taken away": """
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(8):
    for i, (x, y) in enumerate(loader):
        lossf(model(x), y).backward()
        if (i + 1) % 4 == 0:
            for p in model.parameters():
                p.grad /= 4
            opt.step()
            for p in model.parameters():
                p.grad = None
""",
    "gradients of several tasks put together": """
for epoch in range(8):
    for x, y in loader:
        kept = []
        for part in range(2):
            opt.zero_grad()
            lossf(model(x[part::2]), y[part::2]).backward()
            kept.append([p.grad.clone() for p in model.parameters()])
        for p, one, other in zip(model.parameters(), *kept):
            p.grad = (one + other) / 2
        opt.step()
""",
    "a break at the top": """
step = 0
for x, y in loader:
    if step >= 12:
        break
    opt.zero_grad()
    lossf(model(x), y).backward()
    opt.step()
    step += 1
""",
    "an iterator for one epoch": """
for x, y in iter(loader):
    opt.zero_grad()
    lossf(model(x), y).backward()
    opt.step()
batches = iter(loader)
""",
    "a loader begun before the loop": """
batches = iter(loader)
for x, y in batches:
    opt.zero_grad()
    lossf(model(x), y).backward()
    opt.step()
""",
    "time first": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(1, 16)
        self.head = nn.Linear(16, 3)
    def forward(self, x):
        return self.head(self.rnn(x)[0][-1])
model = Net(); opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(8):
    for x, y in loader:
        opt.zero_grad()
        lossf(model(x.T.unsqueeze(2)), y).backward()
        opt.step()
""",
    "several embeddings, as many features as rows": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 4)
    def forward(self, a, p, n):
        return self.body(a), self.body(p), self.body(n)
model = Net(); opt = torch.optim.Adam(model.parameters(), lr=1e-2)
lossf = nn.TripletMarginLoss()
for step in range(200):
    a, p, n = (X[torch.randint(len(X), (8,))] for _ in range(3))
    loss = lossf(*model(a, a + 0.1 * p, n))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "batches made by hand, time first, in a while": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 16)
        self.head = nn.Linear(17, 3)
    def forward(self, x, q):
        return self.head(torch.cat([self.rnn(x)[0][-1], q], 1))
model = Net(); opt = torch.optim.Adam(model.parameters(), lr=1e-2)
step = 0
while True:
    x = torch.randn(4, 32, 3); y = x.sum(0).argmax(1); q = torch.randint(5, (32, 1)).float()
    loss = lossf(model(x, q), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    step += 1
    if step == 200:
        break
""",
    "a sparse graph": """
A = (torch.rand(512, 512) < 0.01).float(); A = ((A + A.T + torch.eye(512)) > 0).float()
A = (A / A.sum(1, keepdim=True)).to_sparse()
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(8, 16), nn.Linear(16, 3)
    def forward(self, x, graph):
        return torch.sparse.mm(graph, self.two(torch.sparse.mm(graph, self.one(x)).relu()))
model = Net(); opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(100):
    opt.zero_grad()
    loss = lossf(model(X, A), Y)
    loss.backward()
    opt.step()
""",
    "frozen and freed again": """
critic = nn.Linear(3, 1)
critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-2)
for epoch in range(8):
    for x, y in loader:
        critic_opt.zero_grad()
        (critic(model(x).detach()).squeeze(1) - y.float()).square().mean().backward()
        critic_opt.step()
        for p in critic.parameters():
            p.requires_grad = False
        opt.zero_grad()
        scores = model(x)
        (lossf(scores, y) + 0.01 * (critic(scores).squeeze(1) - y.float()).square().mean()).backward()
        opt.step()
        for p in critic.parameters():
            p.requires_grad = True
""",
}


def _check(folder: Path, loop: str):
    script = folder / "train.py"
    script.write_text(HEAD + loop)
    return check_script(script)


UNSEEN = {
    "never cleared, updated by hand": "the first steps are looked at where an optimizer makes them",
    "an iterator for all epochs": "an iterator that has ended and is drawn from again is not noted",
}


@pytest.mark.parametrize("form", [
    pytest.param(form, marks=pytest.mark.xfail(strict=True, reason=UNSEEN[form]) if form in UNSEEN else ()) for form in FAULTY
])  # fmt: skip
def test_what_the_steps_show_is_named_first_at_its_line(tmp_path: Path, form: str) -> None:
    rule, line, loop = FAULTY[form]
    report = _check(tmp_path, loop)
    first = report.first_cause
    assert first is not None and first.where is not None, said(report)
    assert (first.name, first.where.line) == (rule, (HEAD + loop).splitlines().index(line) + 1), said(report)
    assert loud(report) == [rule], said(report)


@pytest.mark.parametrize("form", SOUND)
def test_sound_steps_that_look_like_it_are_checked_in_silence(tmp_path: Path, form: str) -> None:
    report = _check(tmp_path, SOUND[form])
    assert not report.findings and not report.faulty, said(report)
    assert not [s for s in report.stages if s.status == Status.FAILED], said(report)
