"""The steps that are replayed are those of the training: their batches end where they end, and weights that were stepped count."""

from pathlib import Path

import pytest

from trainwright.core.report import Status
from walking import loud, said, walk

pytestmark = pytest.mark.slow

HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x[:, :2].sum(1) > 0).long()
train = DataLoader(TensorDataset(x[:384], y[:384]), 32, shuffle=True)
held = DataLoader(TensorDataset(x[384:], y[384:]), 32)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
loss_of = nn.CrossEntropyLoss()
precision = torch.autocast("cpu", dtype=torch.bfloat16)

def accuracy(loader):
    model.eval()
    hits = 0
    with torch.no_grad():
        for a, b in loader:
            hits += (model(a).argmax(1) == b).sum().item()
    model.train()
    return hits / 128

def update(loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LEARNING = {
    "an evaluation in the midst of a while loop": """
it = iter(train)
step = 0
while step < 60:
    try:
        a, b = next(it)
    except StopIteration:
        it = iter(train)
        a, b = next(it)
    update(loss_of(model(a), b))
    if step % 10 == 0:
        print(step, accuracy(held))
    step += 1
""",
    "a loader begun for each batch": """
for step in range(60):
    a, b = next(iter(train))
    update(loss_of(model(a), b))
    if step % 10 == 0:
        print(step, accuracy(held))
""",
    "an evaluation loader that keeps its workers": """
held = DataLoader(held.dataset, 32, num_workers=1, persistent_workers=True)
for step in range(40):
    a, b = next(iter(train))
    update(loss_of(model(a), b))
    if step % 10 == 0:
        print(step, accuracy(held))
""",
    "autocast in a loop without a loader": """
for epoch in range(4):
    for rows in torch.randperm(384).split(32):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = loss_of(model(x[rows]).float(), y[rows])
        update(loss)
""",
    "autocast by name": """
for epoch in range(4):
    for rows in torch.randperm(384).split(32):
        with precision:
            loss = loss_of(model(x[rows]).float(), y[rows])
        update(loss)
""",
}
MICRO_BATCHES = """
it = iter(train)
for step in range(6):
    optimizer.zero_grad()
    sums = []
    for part in range(2):
        a, b = next(it)
        (loss_of(model(a), b) / 2).backward()
        sums.append(float(a.sum()))
    assert sums[0] != sums[1], "one batch twice"
    optimizer.step()
"""
AROUND = """
with precision:
    for epoch in range(4):
        for rows in torch.randperm(384).split(32):
            loss = loss_of(model(x[rows]).float(), y[rows])
            update(loss)
"""


@pytest.mark.parametrize("loop", LEARNING.values(), ids=LEARNING)
def test_a_sound_loop_learns_its_batch(loop: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(HEAD + loop)
    report = walk(script)
    assert not loud(report) and not report.internal_errors, said(report)
    overfit = next(s for s in report.stages if s.stage.label == "overfit")
    assert overfit.status == Status.PASSED and "learned" in overfit.why, said(report)


def test_micro_batches_of_one_step_are_different_ones(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(HEAD + MICRO_BATCHES)
    report = walk(script)
    assert all(s.status.through or s.status == Status.SKIPPED for s in report.stages), said(report)


def test_autocast_around_the_whole_loop_keeps_the_weights_of_the_first_step(tmp_path: Path) -> None:
    """torch keeps the weights that it cast until the outermost context ends: such a training learns nothing."""
    script = tmp_path / "train.py"
    script.write_text(HEAD + AROUND)
    report = walk(script)
    assert loud(report) == ["unlearnable-batch"], said(report)


STATE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randint(0, 20, (250, 12))
y = (x[:, -1] > 9).long()
loader = DataLoader(TensorDataset(x, y), 32, shuffle=True)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(20, 16), nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 2)
        self.begin({begun})

    def begin(self, rows):
        self.state = torch.zeros(1, rows, 32), torch.zeros(1, rows, 32)

    def forward(self, x):
        seen, _ = self.cell(self.embed(x), self.state)
        return self.head(seen[:, -1])

net = Net()
optimizer = torch.optim.Adam(net.parameters(), 1e-2)
for epoch in range(4):
    {draw}
        {each}
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(a), b).backward()
        optimizer.step()
"""
FOR = "for a, b in loader:"
WHILE = "it = iter(loader)\n    for _ in range(len(loader)):\n        a, b = next(it)"


@pytest.mark.parametrize(
    ("begun", "draw", "each", "named"),
    [
        (1, FOR, "net.begin(len(a))", []),
        (1, WHILE, "net.begin(len(a))", []),
        (32, FOR, "pass", ["fixed-batch-size"]),
    ],
)
def test_a_state_that_the_step_makes_for_its_batch_fits_every_batch(begun, draw, each, named, tmp_path: Path) -> None:
    """The model alone fails with the rows of the last batch: whether training does is asked of its own step."""
    script = tmp_path / "train.py"
    script.write_text(STATE.format(begun=begun, draw=draw, each=each))
    report = walk(script)
    assert loud(report) == named, said(report)


def test_the_loss_is_shown_without_the_scalers_factor() -> None:
    report = walk(Path(__file__).parents[1] / "healthy" / "loops" / "grad_scaler.py")
    why = next(s.why for s in report.stages if s.stage.label == "loss")
    assert 2 < float(why.split(";")[0]) < 3, said(report)
