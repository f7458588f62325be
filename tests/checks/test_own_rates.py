"""A loop that sets its learning rate by itself: experiments change the rate that it sets, and findings name that line."""

from pathlib import Path

import pytest

from checks import check_script, loud, said
from trainwright.core import Outcome

pytestmark = pytest.mark.slow

SCRIPT = """
import math
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x[:, :2].sum(1) > 0).long()
train = DataLoader(TensorDataset(x, y), 32, shuffle=True)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.{optimizer}(model.parameters(), lr=0.01)
loss_of = nn.CrossEntropyLoss()

def adjust(share):
    for group in optimizer.param_groups:
        {write}

for epoch in range(10):
    adjust((1 + math.cos(math.pi * epoch / 10)) / 2)
    for number, (a, b) in enumerate(train):
        {each}
        optimizer.zero_grad()
        loss = loss_of(model(a), b)
        loss.backward()
        optimizer.step()
"""


def written(folder: Path, **parts: str) -> Path:
    """A script with these parts."""
    script = folder / "train.py"
    script.write_text(SCRIPT.format(**({"optimizer": "Adam", "write": "pass", "each": "pass"} | parts)), "utf-8")
    return script


@pytest.mark.parametrize("where", ["write", "each"])
@pytest.mark.parametrize(
    ("optimizer", "rate", "name"), [("SGD", 1e-8, "negligible-learning-rate"), ("Adam", 20, "excessive-learning-rate")]
)
def test_a_rate_that_the_loop_sets_is_named_where_it_is_set(tmp_path, optimizer, rate, name, where):
    if where == "write":
        parts = {"write": f'group["lr"] = {rate} * share'}
    else:
        parts = {"each": f'optimizer.param_groups[0]["lr"] = {rate} * (1 + number / 16) / 2'}
    script = written(tmp_path, optimizer=optimizer, **parts)
    found = check_script(script).first_cause
    line = next(n for n, text in enumerate(script.read_text("utf-8").splitlines(), 1) if '["lr"] =' in text)
    assert found is not None and (found.name, found.where.line) == (name, line), found
    assert isinstance(found.proof, Outcome), found


@pytest.mark.parametrize(
    "parts",
    [
        {"write": 'group["lr"] = 0.01 * share'},
        {"each": 'optimizer.param_groups[0]["lr"] = 0.02 * (1 + number / 16) / 2'},
        {"each": 'optimizer.param_groups[0]["lr"] *= 0.999'},
        {"each": 'optimizer.param_groups[0]["lr"] /= 1.001'},
    ],
)
def test_a_sound_rate_that_the_loop_sets_is_checked_in_silence(tmp_path, parts):
    report = check_script(written(tmp_path, **parts))
    assert not loud(report), said(report)
