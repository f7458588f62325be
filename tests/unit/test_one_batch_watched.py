"""What evaluations read of the set of training is told apart from its draws, and a gradient scaler is seen."""

import pytest

from watched import watched

CODE = """
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows = TensorDataset(torch.randn(100, 4), torch.randint(0, 3, (100,)))
loader = DataLoader(rows, batch_size=10)
model, how = nn.Linear(4, 3), sys.argv[1]
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", enabled=how == "evaluates")
x, y = next(iter(loader))

def step(x, y):
    optimizer.zero_grad()
    scaler.scale(nn.functional.cross_entropy(model(x), y)).backward()
    scaler.step(optimizer)
    scaler.update()

for update in range(60):
    if how == "anew":
        x, y = next(iter(loader))
    step(x, y)
    if how == "evaluates" and update % 6 == 0:
        with torch.no_grad():
            for inputs, labels in loader:
                nn.functional.cross_entropy(model(inputs), labels)
if how == "teaches":
    for inputs, labels in loader:
        with torch.no_grad():
            model(inputs)
        step(inputs, labels)
"""


@pytest.mark.parametrize(
    ("how", "drawn", "evaluated"), [("evaluates", 1010, 1000), ("anew", 610, 0), ("teaches", 110, 0)]
)
def test_draws_of_evaluations_are_counted_apart(how: str, drawn: int, evaluated: int) -> None:
    record, _ = watched(CODE, how)
    (seen,) = record.drawn
    assert (seen.draws.total(), seen.evaluated.total()) == (drawn, evaluated)
    assert record.is_scaled == (how == "evaluates")
    assert not record.watcher_errors
