"""What happens to the gradient between two updates: noted for each thing that changes it, whoever does."""

import numpy as np
import pytest
import torch
from torch import nn

from trainwright.probes.gradients import accumulated
from trainwright.rules.gradients.misused_scaler import clipped_while_scaled
from trainwright.seams.listening.torch_patches import patch_clipping
from trainwright.seams.torch.gates import Gates, Passed
from trainwright.stages.gradients import BACKWARD, BY_HAND, CLEARED, CLIPPED, STEP, GradientChange, GradientFacts

X = torch.tensor([[3.0, 4.0]])


@pytest.fixture(autouse=True)
def patched(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "backward", torch.Tensor.backward)
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        monkeypatch.setattr(nn.utils, name, getattr(nn.utils, name))
        monkeypatch.setattr(nn.utils.clip_grad, name, getattr(nn.utils.clip_grad, name))
    patch_clipping(nn.utils.clip_grad)


def _observed(statements) -> Passed:
    """What a step's statements do to a gradient of norm 5."""
    model = nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    gates = Gates([optimizer], [], live=False, parameters=[*model.parameters()], keep=True)
    with gates.closed() as passed:
        gates._note_begin()
        model(X).sum().backward()
        gates._note_reached()
        statements(model, optimizer)
        optimizer.step()
    return passed


def _clear_by_hand(model, optimizer):
    model.weight.grad = None


def _zero_by_hand(model, optimizer):
    model.weight.grad.zero_()


def _halve(model, optimizer):
    model.weight.grad /= 2


@pytest.mark.parametrize(
    ("statements", "kind", "left"),
    [
        (lambda model, optimizer: nn.utils.clip_grad_norm_(model.parameters(), 1.0), CLIPPED, 0.2),
        (lambda model, optimizer: nn.utils.clip_grad_norm_(model.weight, 1.0), CLIPPED, 0.2),
        (lambda model, optimizer: nn.utils.clip_grad_value_(model.parameters(), 3.0), CLIPPED, 18**0.5 / 5),
        (lambda model, optimizer: optimizer.zero_grad(), CLEARED, 0.0),
        (lambda model, optimizer: model.zero_grad(), CLEARED, 0.0),
        (_clear_by_hand, CLEARED, 0.0),
        (_zero_by_hand, CLEARED, 0.0),
        (_halve, BY_HAND, 0.5),
    ],
)
def test_each_change_of_a_gradient_is_kept_with_what_it_leaves(statements, kind: str, left: float) -> None:
    changes = _observed(statements).changes
    assert [c.kind for c in changes] == [BACKWARD, kind, STEP]
    assert changes[0].after == pytest.approx(5.0)
    assert changes[1].left == pytest.approx(left, abs=1e-5)
    assert changes[2].before == pytest.approx(5 * left, abs=1e-5)


def test_nothing_is_kept_of_a_gradient_that_stays() -> None:
    assert [c.kind for c in _observed(lambda model, optimizer: None).changes] == [BACKWARD, STEP]


def test_the_module_s_own_method_is_there_again_afterwards() -> None:
    method = nn.Module.zero_grad
    _observed(lambda model, optimizer: None)
    assert nn.Module.zero_grad is method


A, B = {"w": np.array([1.0, 0.0])}, {"w": np.array([0.0, 1.0])}
MEAN, SUM = {"w": np.array([0.5, 0.5])}, {"w": np.array([1.0, 1.0])}


@pytest.mark.parametrize(
    ("reached", "together", "share"),
    [
        (MEAN, MEAN, 1.0),
        (MEAN, {"w": MEAN["w"] / 2}, 1.0),  # clipped to 1/k
        (SUM, MEAN, 1.0),  # divided before the step
        (SUM, SUM, 2.0),
        (None, SUM, 2.0),
    ],
)
def test_clipping_a_mean_is_not_an_accumulation_without_division(reached, together, share: float) -> None:
    assert accumulated(together, [A, B], reached)["accumulated_share"] == pytest.approx(share)


def _facts(clipped: float, stepped: float, scale: float | None) -> GradientFacts:
    changes = (
        GradientChange(kind=BACKWARD, before=0.0, after=1000.0),
        GradientChange(kind=CLIPPED, before=1000.0, after=clipped),
        GradientChange(kind=STEP, before=stepped, after=stepped),
    )
    return GradientFacts(window_changes=changes, loss_scale=scale)


def test_only_division_by_the_scale_behind_the_clipping_says_that_scaled_gradients_were_clipped() -> None:
    assert clipped_while_scaled(_facts(1.0, 1 / 1024, 1024.0)) is not None
    assert clipped_while_scaled(_facts(1.0, 1.0, 1024.0)) is None
    assert clipped_while_scaled(_facts(1000.0, 1000 / 1024, 1024.0)) is None, "nothing was cut"
    assert clipped_while_scaled(_facts(1.0, 1 / 1024, None)) is None
