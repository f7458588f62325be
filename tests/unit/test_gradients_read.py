"""A loop that reads gradients itself and changes nothing by them is no training."""

import sys
from pathlib import Path
from typing import Any

import pytest

from trainwright.seams.loops.found_loops import Loop, loops_at, reads_gradients_alone
from trainwright.seams.loops.training_loop import training_loop

SCRIPT = """
def run(weight, rows, seen, look):
    for row in rows:
        (weight * row).backward()
        {line}
        look()
"""


class Tensor:
    """As much of a tensor as the lines below need."""

    def __init__(self) -> None:
        self.grad = self.data = self

    def backward(self, *_: Any) -> "Tensor":
        return self

    sign = sub_ = __mul__ = __rmul__ = __sub__ = __isub__ = __iadd__ = __pow__ = backward


def meet_loop(line: str, script: Path) -> tuple[Loop, Loop | None]:
    """The loop that is running, and the one that is taken for the training."""
    found: list[tuple[Loop, Loop | None]] = []

    def look() -> None:
        frame = sys._getframe(1)
        found.append((loops_at(frame, frame.f_lineno)[0], training_loop(frame, backward=True)))

    script.write_text(SCRIPT.format(line=line))
    names: dict[str, Any] = {}
    exec(compile(script.read_text(), str(script), "exec"), names)
    names["run"](Tensor(), [Tensor()], Tensor(), look)
    return found[0]


@pytest.mark.parametrize(
    ("line", "alone"),
    [
        ("seen = row.grad.sign()", True),
        ("seen += weight.grad ** 2", True),
        ("seen = row", False),
        ("weight.data.sub_(weight.grad)", False),
        ("weight -= 0.1 * weight.grad", False),
        ("weight = weight - 0.1 * weight.grad", False),
    ],
)
def test_gradients_that_only_the_script_reads(line: str, alone: bool, tmp_path: Path) -> None:
    loop, training = meet_loop(line, tmp_path / "train.py")
    assert reads_gradients_alone(loop) == alone
    assert (training is None) == alone
