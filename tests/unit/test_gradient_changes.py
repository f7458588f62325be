"""What happens to the gradient between two updates: noted for each thing that changes it, whoever does."""

import pytest
import torch
from torch import nn

from trainwright.seams.torch.gates import Gates, Passed
from trainwright.stages.gradients import BACKWARD, BY_HAND, CLEARED, STEP

X = torch.tensor([[3.0, 4.0]])


def _observed(statements) -> Passed:
    """What a step's statements do to a gradient."""
    model = nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    gates = Gates([*model.parameters()], keep=True)
    gates.begin_backward()
    model(X).sum().backward()
    gates.end_backward()
    statements(model, optimizer)
    gates.step(optimizer)
    return gates.passed


def _clear_by_hand(model, optimizer):
    model.weight.grad = None


def _zero_by_hand(model, optimizer):
    model.weight.grad.zero_()


def _halve(model, optimizer):
    model.weight.grad /= 2


@pytest.mark.parametrize(
    ("statements", "kind"), [(_clear_by_hand, CLEARED), (_zero_by_hand, CLEARED), (_halve, BY_HAND)]
)
def test_each_change_of_a_gradient_is_kept(statements, kind: str) -> None:
    assert _observed(statements).changes == [BACKWARD, kind, STEP]


def test_nothing_is_kept_of_a_gradient_that_stays() -> None:
    assert _observed(lambda model, optimizer: None).changes == [BACKWARD, STEP]
