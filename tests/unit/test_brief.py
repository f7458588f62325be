"""What guessing gives is compared with another constant only where both are of the same metric."""

import pytest

from trainwright.core.sheet import OWN, SCORES, Sheet
from trainwright.report.sheet import _guessing


@pytest.mark.parametrize(
    ("name", "is_compared"),
    [
        ("accuracy", True),
        ("val_accuracy", True),
        ("eval_accuracy", True),
        ("test_accuracy", True),
        ("val_balanced_accuracy", False),
        ("balanced_accuracy", False),
    ],
)
def test_only_the_same_metric_is_compared(name: str, is_compared: bool) -> None:
    row = OWN.row(name=name, source="returned", count=1, first=0.6, last=0.6, constant=0.5)
    score = SCORES.row(name="accuracy", output="", rows_of="held-out", rows=100, first=0.6, last=0.6, constant=0.7)
    said = _guessing(row, Sheet(updates=10, scores=(score,)))
    assert ("the first is the best constant" in said) == is_compared and "constant 0.5" in said
