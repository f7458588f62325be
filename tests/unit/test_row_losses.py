"""The loss of each row, against torch, and its comparison with a constant prediction."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from trainwright.probes.row_losses import compare, loss_rows, sum_of, weights_of

torch.manual_seed(0)
SCORES, CLASSES = torch.randn(40, 5), torch.randint(0, 5, (40,))
ONE, BITS = torch.randn(40, 3), torch.randint(0, 2, (40, 3)).float()
WEIGHT = torch.rand(5) + 0.5
IGNORED = torch.where(torch.arange(40) % 4 == 0, torch.tensor(-100), CLASSES)


def _array(value):
    return value.numpy() if isinstance(value, torch.Tensor) else value


@pytest.mark.parametrize(
    ("name", "scores", "targets", "options"),
    [
        ("cross_entropy", SCORES, CLASSES, {}),
        ("cross_entropy", SCORES, CLASSES, {"weight": WEIGHT}),
        ("cross_entropy", SCORES, CLASSES, {"label_smoothing": 0.1}),
        ("cross_entropy", SCORES, CLASSES, {"weight": WEIGHT, "label_smoothing": 0.1}),
        ("cross_entropy", SCORES, IGNORED, {}),
        ("cross_entropy", SCORES, torch.softmax(SCORES.flip(0), 1), {}),
        ("cross_entropy", SCORES.reshape(8, 5, 5), CLASSES.reshape(8, 5), {}),
        ("nll_loss", F.log_softmax(SCORES, 1), CLASSES, {}),
        ("binary_cross_entropy_with_logits", ONE, BITS, {}),
        ("binary_cross_entropy_with_logits", ONE, BITS, {"pos_weight": torch.tensor([1.0, 2.0, 3.0])}),
        ("binary_cross_entropy", torch.sigmoid(ONE), BITS, {}),
        ("mse_loss", ONE, BITS, {}),
        ("l1_loss", ONE, BITS, {}),
        ("huber_loss", ONE, BITS, {"delta": 0.5}),
        ("smooth_l1_loss", ONE, BITS, {"beta": 0.5}),
    ],
)
def test_the_rows_add_up_to_the_loss_and_a_perfect_prediction_beats_a_constant(name, scores, targets, options) -> None:
    value = float(getattr(F, name)(scores, targets, **options))
    found = loss_rows(name, _array(scores), _array(targets), value, {k: _array(v) for k, v in options.items()})
    assert found is not None
    assert found.scored.mean == pytest.approx(value, rel=1e-4)
    compared = compare([found])
    assert compared is not None
    assert compared.loss == pytest.approx(value, rel=1e-4)
    assert np.isfinite([compared.constant, compared.error]).all()
    assert compared.deviations < 3.5  # random scores


def test_the_rows_of_a_loss_of_nearly_nothing_are_known_too() -> None:
    scores = 12 * F.one_hot(CLASSES[:3], 5).float()
    value = F.cross_entropy(scores, CLASSES[:3]).item()
    assert 0 < value < 1e-4
    assert loss_rows("cross_entropy", scores.numpy(), CLASSES[:3].numpy(), value, {}) is not None


def test_a_loss_that_is_not_the_mean_over_its_rows_is_unknown() -> None:
    assert loss_rows("cross_entropy", SCORES.numpy(), CLASSES.numpy(), 7.0, {}) is None
    assert loss_rows("cross_entropy", SCORES.numpy(), CLASSES.numpy(), 7.0, {"reduction": "sum"}) is None
    assert loss_rows("poisson_nll_loss", ONE.numpy(), BITS.numpy(), 1.0, {}) is None


def test_several_batches_are_compared_with_one_constant() -> None:
    parts = []
    for rows in (slice(0, 10), slice(10, 40)):
        right = 3.0 * F.one_hot(CLASSES[rows], 5).float()
        value = float(F.cross_entropy(right, CLASSES[rows]))
        parts.append(loss_rows("cross_entropy", right.numpy(), CLASSES[rows].numpy(), value, {}))
    found = compare([p for p in parts if p is not None])
    assert found is not None
    assert found.rows == 40
    shares = torch.bincount(CLASSES, minlength=5) / 40
    assert found.constant == pytest.approx(float(-(shares * shares.log()).sum()), rel=1e-5)
    assert found.deviations > 15


def test_the_weights_of_several_losses_are_found_from_their_sums() -> None:
    values = np.random.default_rng(0).random((6, 2))
    assert weights_of(values, values @ [1.0, 0.25] / 8 + 3.0) == pytest.approx([1 / 8, 1 / 32])


def test_weights_that_do_not_explain_the_sums_are_unknown() -> None:
    values = np.random.default_rng(0).random((6, 2))
    assert weights_of(values, values @ [1.0, 0.25] + np.arange(6)) is None, "something else varies"
    assert weights_of(values, values @ [1.0, -0.25]) is None, "one is maximized"
    assert weights_of(values[:2], values[:2] @ [1.0, 0.25]) is None, "too few batches"


def test_a_sum_of_losses_is_compared_with_the_sum_of_their_constants() -> None:
    rows = loss_rows("cross_entropy", SCORES.numpy(), CLASSES.numpy(), F.cross_entropy(SCORES, CLASSES).item(), {})
    one = compare([rows])
    both = sum_of([one, one], [1.0, 0.5])
    assert (both.loss, both.constant, both.error) == pytest.approx(
        (1.5 * one.loss, 1.5 * one.constant, 1.5 * one.error)
    )
    assert both.deviations == pytest.approx(one.deviations)


def test_rows_with_weights_are_compared_with_a_constant_for_these_weights() -> None:
    """As Keras weights rows: the sum is divided by their number, not by the sum of their weights."""
    factors = np.where(CLASSES.numpy() == 0, 10.0, 0.1)
    each = F.cross_entropy(SCORES, CLASSES, reduction="none").numpy()
    value = float((each * factors).mean())
    rows = loss_rows("cross_entropy", SCORES.numpy(), CLASSES.numpy(), value, {}, factors=factors)
    found = compare([rows])
    assert found.loss == pytest.approx(value)
    shares = np.bincount(CLASSES, weights=factors) / factors.sum()
    assert found.constant == pytest.approx(float((factors * -np.log(shares[CLASSES])).mean()))
    assert loss_rows("cross_entropy", SCORES.numpy(), CLASSES.numpy(), value, {}, factors=factors[:-1]) is None
