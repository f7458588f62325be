"""Values far from all others, told from values that are merely large."""

import numpy as np
import pytest

from trainwright.probes.splits.odd_rows import extreme_rows

RNG = np.random.default_rng


def _found(values: np.ndarray):
    return extreme_rows("x", values, range(len(values)))


def test_one_value_far_outside_is_found_with_its_row_and_feature() -> None:
    table = RNG(0).normal(size=(500, 6))
    table[123, 4] = -5e3
    found = _found(table)
    assert found is not None and (found.feature, found.rows, found.count, found.value) == (4, (123,), 1, -5e3)
    assert found.low > -5 and found.high < 5 and found.times > 1000


def test_a_code_for_unknown_may_stand_in_many_rows_but_not_in_most() -> None:
    column = RNG(0).normal(size=400)
    column[::10] = -999.0
    found = _found(column)
    assert found is not None and found.feature is None and found.count == 40 and found.rows[:2] == (0, 10)
    column[::3] = -999.0
    assert _found(column) is None


def test_of_pictures_the_largest_value_of_a_row_counts() -> None:
    pictures = RNG(0).random((60, 3, 8, 8)).astype(np.float32)
    pictures[7, 1, 2, 3] = 4e6
    found = _found(pictures)
    assert found is not None and found.rows == (7,) and found.feature is None


def test_rows_that_are_not_finite_are_another_fault() -> None:
    column = RNG(0).normal(size=200)
    column[3] = np.inf
    assert _found(column) is None
    column[5] = 1e6
    found = _found(column)
    assert found is not None and found.rows == (5,)


@pytest.mark.parametrize(
    "values",
    [
        RNG(0).lognormal(0, 2, size=5000),
        RNG(1).pareto(1.5, size=5000),
        RNG(2).standard_t(2, size=5000),
        (RNG(3).random(1000) < 0.001).astype(float),
        np.r_[np.zeros(900), RNG(4).poisson(2, 99), 400.0],
        np.arange(1000.0) ** 4,
        RNG(5).integers(0, 2**31, 1000),
        np.full(100, 7.0),
        RNG(6).normal(size=20) * 1e6,
    ],
    ids=["lognormal", "pareto", "t", "indicator", "counts", "powers", "hashes", "constant", "few"],
)
def test_heavy_tails_counts_and_indicators_are_ordinary(values: np.ndarray) -> None:
    assert _found(values) is None
