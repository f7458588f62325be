"""A training whose result nobody uses, before the real one, is left to run: the real one is walked."""

from pathlib import Path

import pytest

from walking import walk

pytestmark = pytest.mark.slow

HEAD = """
import copy
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(640, 8)
y = (x[:, :2].sum(1) > 0).long()
train = DataLoader(TensorDataset(x, y), 32, shuffle=True)
loss_of = nn.CrossEntropyLoss()

def make():
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
"""
REAL = """
net = make()
optimizer = torch.optim.Adam(net.parameters(), 1e-2)
for epoch in range(4):
    for a, b in train:
        optimizer.zero_grad()
        loss_of(torch.softmax(net(a), 1), b).backward()  # the real training
        optimizer.step()
"""
ONE_BATCH = """
first = make()
optimizer = torch.optim.Adam(first.parameters(), 1e-2)
a, b = next(iter(train))
for step in range(50):
    optimizer.zero_grad()
    loss = loss_of(first(a), b)
    loss.backward()
    optimizer.step()
"""
IN_A_FUNCTION = """
def learns_a_batch():
    first = make()
    optimizer = torch.optim.Adam(first.parameters(), 1e-2)
    a, b = next(iter(train))
    for step in range(50):
        optimizer.zero_grad()
        loss = loss_of(first(a), b)
        loss.backward()
        optimizer.step()
    return loss.item() < 0.1

assert learns_a_batch()
"""
RESTORED = """
net = make()
kept = copy.deepcopy(net.state_dict())
optimizer = torch.optim.SGD(net.parameters(), 1e-6)
for a, b in train:
    optimizer.zero_grad()
    loss_of(net(a), b).backward()
    optimizer.step()
    optimizer.param_groups[0]["lr"] *= 1.5
net.load_state_dict(kept)
"""
USED = {
    "evaluated": ONE_BATCH + "\nprint(first(x).argmax(1).eq(y).float().mean())\n",
    "saved": ONE_BATCH + "\nimport io\ntorch.save(first.state_dict(), io.BytesIO())\n",
    "in a list": ONE_BATCH.replace("optimizer =", "models = [first]\noptimizer =", 1),
    "in a class": "class Holder:\n    pass\n\nholder = Holder()\n"
    + ONE_BATCH.replace("optimizer =", "holder.model = first\noptimizer =", 1),
    "in a function": "def score():\n    return first(x).argmax(1).eq(y).float().mean()\n" + ONE_BATCH + "\nprint(score())\n",
    "in a method": "class Judge:\n    def score(self):\n        return first(x).argmax(1).eq(y).float().mean()\n"
    + ONE_BATCH
    + "\nprint(Judge().score())\n",
    "evaluated in the loop": ONE_BATCH.replace("loss.backward()\n", "loss.backward()\n    with torch.no_grad():\n        print(first(x).std())\n"),
    "given by a caller": """
def fit(model):
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for a, b in train:
        optimizer.zero_grad()
        loss_of(model(a), b).backward()
        optimizer.step()

first = make()
fit(first)
""",
}  # fmt: skip


@pytest.mark.parametrize("before", [ONE_BATCH, IN_A_FUNCTION, RESTORED], ids=["one batch", "in a function", "restored"])
def test_a_training_that_nobody_uses_is_left_to_run(tmp_path: Path, before: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(HEAD + before + REAL, "utf-8")
    report = walk(script)
    line = next(n for n, t in enumerate(script.read_text("utf-8").splitlines(), 1) if "# the real training" in t)
    found = report.first_cause
    assert found is not None and (found.name, found.where.line) == ("double-activation", line), report
    assert report.training is None


@pytest.mark.parametrize("before", USED.values(), ids=USED)
def test_a_training_that_is_used_is_walked(tmp_path: Path, before: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(HEAD + before + REAL, "utf-8")
    assert walk(script).training == 1
