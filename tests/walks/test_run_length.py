"""How many steps a run of the walk takes."""

import re
from pathlib import Path

import pytest

from trainwright.core.stage import Stage
from walking import walk

pytestmark = pytest.mark.slow

LOOPS = Path(__file__).parents[1] / "healthy" / "loops"


def _baseline_steps(name: str) -> int:
    report = walk(LOOPS / f"{name}.py")
    why = next(s.why for s in report.stages if s.stage == Stage.BASELINE)
    return int(re.search(r"in (\d+) steps", why).group(1))


def test_the_baseline_ends_once_the_loss_is_clearly_under_that_of_a_constant() -> None:
    assert 8 <= _baseline_steps("sgd_batch_norm") < 20


def test_it_takes_all_its_steps_where_the_loss_of_a_constant_is_not_known_beforehand() -> None:
    assert _baseline_steps("full_batch_regression") == 20
