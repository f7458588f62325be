"""The search for the largest batch that fits."""

from __future__ import annotations

from collections.abc import Callable


def largest_fitting(rows: int, fits: Callable[[int], bool]) -> int:
    """The largest number below `rows` that fits, by bisection; 0: not even one row fits."""
    fitting, failing = 0, rows
    while failing - fitting > 1:
        middle = (fitting + failing) // 2
        fitting, failing = (middle, failing) if fits(middle) else (fitting, middle)
    return fitting
