"""What happens to the gradient between two updates: noted for each thing that changes it, whoever does."""

import pytest
import torch
from torch import nn

from trainwright.seams.torch.gates import GateLog, Gates, unscaled_late
from trainwright.stages.gradients import BACKWARD, BY_HAND, CLEARED, CLIPPED, STEP

X = torch.tensor([[3.0, 4.0]])


def _observed(statements) -> GateLog:
    """What a step's statements do to a gradient of norm 5."""
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
    ("statements", "kind", "left"),
    [(_clear_by_hand, CLEARED, 0.0), (_zero_by_hand, CLEARED, 0.0), (_halve, BY_HAND, 0.5)],
)
def test_each_change_of_a_gradient_is_kept_with_what_it_leaves(statements, kind: str, left: float) -> None:
    changes = _observed(statements).changes
    assert [c.kind for c in changes] == [BACKWARD, kind, STEP]
    assert changes[0].after == pytest.approx(5.0)
    assert changes[1].left == pytest.approx(left, abs=1e-5)
    assert changes[2].before == pytest.approx(5 * left, abs=1e-5)


def test_nothing_is_kept_of_a_gradient_that_stays() -> None:
    assert [c.kind for c in _observed(lambda model, optimizer: None).changes] == [BACKWARD, STEP]


def _clip(model, optimizer, gates) -> None:
    gates.begin_change()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    gates.end_change(CLIPPED)


@pytest.mark.parametrize(("scale", "is_late"), [(65536.0, True), (2.0, False), (1000.0, False)])
def test_what_is_clipped_and_then_divided_by_a_power_of_two_was_clipped_while_scaled(
    scale: float, is_late: bool
) -> None:
    model = nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    gates = Gates([*model.parameters()], keep=True)
    gates.begin_backward()
    (model(X).sum() * scale).backward()
    gates.end_backward()
    _clip(model, optimizer, gates)
    model.weight.grad /= scale
    gates.step(optimizer)
    assert (unscaled_late(gates.passed.changes) is not None) == is_late
