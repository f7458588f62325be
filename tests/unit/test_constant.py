"""The loss of a constant prediction against one that is found by descent, and the floor against one for each row."""

import pytest
import torch
from torch.nn import functional as F

from trainwright.probes.constant import JudgedLoss, constant_and_floor
from trainwright.seams.torch.loss import judge_call
from trainwright.seams.torch.observer import Observer

torch.manual_seed(0)
CLASSES = torch.randint(0, 4, (24,))
TOKENS = torch.where(torch.rand(6, 5) < 0.3, -100, torch.randint(0, 4, (6, 5)))
SOFT = torch.softmax(torch.randn(24, 4), 1)
BITS = (torch.rand(24, 3) < 0.3).float()
CASES = {
    "classes": (F.cross_entropy, (24, 4), CLASSES, {}),
    "weighted classes": (F.cross_entropy, (24, 4), CLASSES, {"weight": torch.tensor([1.0, 5.0, 0.2, 1.0])}),
    "smoothed classes": (F.cross_entropy, (24, 4), CLASSES, {"label_smoothing": 0.2}),
    "smoothed, weighted": (F.cross_entropy, (24, 4), CLASSES, {"label_smoothing": 0.2, "weight": torch.rand(4)}),
    "tokens": (F.cross_entropy, (6, 4, 5), TOKENS, {}),
    "soft targets": (F.cross_entropy, (24, 4), SOFT, {}),
    "several labels": (F.binary_cross_entropy_with_logits, (24, 3), BITS, {}),
    "weighted labels": (
        F.binary_cross_entropy_with_logits,
        (24, 3),
        BITS,
        {"pos_weight": torch.tensor([3.0, 1.0, 0.5])},
    ),
    "squared error": (F.mse_loss, (24, 2), torch.randn(24, 2), {}),
    "absolute error": (F.l1_loss, (24,), torch.randn(24), {}),
}


def observing() -> Observer:
    """An observer of loss calls alone, with gradients or without."""
    return Observer(torch.nn.Identity(), keeps_losses=True)


def calls_of(seen: Observer) -> list[JudgedLoss]:
    return [call for kept in seen.record.kept_losses if (call := judge_call(kept)) is not None]


def descended(function, shape, targets, options, *, constant: bool) -> float:
    """The least loss of one prediction for all rows, or of one for each, by plain descent."""
    middle = (1, shape[1], *(1 for _ in shape[2:])) if len(shape) > 1 else (1,)
    free = torch.zeros(middle if constant else shape, requires_grad=True)
    optimizer = torch.optim.Adam([free], lr=0.05)
    for _ in range(3000):
        optimizer.zero_grad()
        loss = function(free.expand(shape), targets, **options)
        loss.backward()
        optimizer.step()
    return float(loss.detach())


@pytest.mark.parametrize("name", CASES)
def test_it_is_what_descent_finds(name: str) -> None:
    function, shape, targets, options = CASES[name]
    with observing() as seen:
        loss = float(function(torch.randn(shape), targets, **options))
    constant, floor = constant_and_floor([calls_of(seen)], [loss])
    assert constant == pytest.approx(descended(function, shape, targets, options, constant=True), abs=0.01)
    assert floor == pytest.approx(descended(function, shape, targets, options, constant=False), abs=0.02)


def test_a_loss_with_further_terms_has_no_constant() -> None:
    with observing() as seen:
        loss = float(F.mse_loss(torch.randn(8), torch.randn(8)))
    assert constant_and_floor([calls_of(seen)], [loss + 1.0]) == (None, 0.0)
    assert constant_and_floor([[*calls_of(seen), *calls_of(seen)]], [loss]) == (None, 0.0)
    assert constant_and_floor([], []) == (None, 0.0)


@pytest.mark.parametrize(
    ("name", "elements", "mass"),
    [
        ("classes", (24,), 24.0),
        ("weighted classes", (24,), float(torch.tensor([1.0, 5.0, 0.2, 1.0])[CLASSES].sum())),
        ("tokens", (30,), float((TOKENS != -100).sum())),
        ("soft targets", (24, 4), 24.0),
        ("several labels", (24, 3), 24.0),
        ("absolute error", (24, 1), 24.0),
    ],
)
def test_a_call_tells_its_elements_and_what_their_losses_are_divided_by(name: str, elements, mass: float) -> None:
    function, shape, targets, options = CASES[name]
    with observing() as seen:
        function(torch.randn(shape), targets, **options)
    (call,) = calls_of(seen)
    assert call.aims.shape == elements
    assert call.mass == pytest.approx(mass)


@torch.no_grad()
def test_a_call_that_is_no_mean_of_its_rows_is_not_judged() -> None:
    with observing() as seen:
        F.cross_entropy(torch.randn(8, 3), CLASSES[:8] % 3, reduction="none")
        F.poisson_nll_loss(torch.randn(8), torch.ones(8))
        F.mse_loss(torch.randn(()), torch.tensor(1.0))
    assert len(seen.record.kept_losses) == 3
    (call,) = calls_of(seen)
    assert (call.function, call.shape, call.targets.shape) == ("mse_loss", (1,), (1,))
