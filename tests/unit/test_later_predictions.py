"""Two passes over a data set: labels in another order are seen, and what has no labels tells nothing."""

import itertools

import numpy as np
import pytest

pytestmark = pytest.mark.keras

LABELS = np.arange(32) % 5


class Passes:
    """A data set whose batches a function makes, given the number of the pass."""

    def __init__(self, make):
        self.make, self.count = make, itertools.count()

    def __iter__(self):
        number = next(self.count)
        return iter([self.make(number)] * 2)


@pytest.mark.parametrize(
    ("make", "differs"),
    [
        (lambda n: (np.ones((32, 3)), np.roll(LABELS, n)), True),
        (lambda n: (np.ones((32, 3)), LABELS), False),
        (lambda n: np.ones((32, 3)), False),  # inputs alone
        (lambda n: (np.ones((32, 3)),), False),
        (lambda n: {"x": np.ones((32, 3))}, False),
        (lambda n: 1 / 0, False),
    ],
)
def test_only_labels_in_another_order_are_reshuffled(make, differs):
    from trainwright.adapters.keras.later_predictions import _differs

    assert _differs(Passes(make)) is differs
