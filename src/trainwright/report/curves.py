"""A curve as block characters for a terminal, and a row's numbers as the points of a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trainwright.core.sheet import Curve

BLOCKS = "▁▂▃▄▅▆▇█"
NOT_FINITE = "!"
# Width of a curve in a terminal, and the size of a picture.
CHARACTERS = 32
WIDTH, HEIGHT, EDGE = 260.0, 56.0, 3.0
# A positive curve that spans more than this ratio is drawn with a logarithm: otherwise its end is a flat line.
MOST_LINEAR = 100.0


def is_logarithmic(curve: Curve) -> bool:
    """Whether the curve is drawn with a logarithm."""
    finite = [value for value in curve.values if math.isfinite(value)]
    if curve.name.startswith("learning rate"):  # a schedule is known by its shape, and may end at 0
        return False
    return bool(finite) and min(finite) > 0 and max(finite) > MOST_LINEAR * min(finite)


def blocks(curve: Curve, updates: int) -> str:
    """One line of block characters from the first update to the last, higher for larger; `!` where it is not finite.

    Where the curve has no point, it stays at its last one; before its first it is blank.
    """
    parts: list[list[float | None]] = [[] for _ in range(CHARACTERS)]
    for update, height in zip(curve.updates, _heights(curve), strict=True):
        parts[min(update * CHARACTERS // max(updates, 1), CHARACTERS - 1)].append(height)
    drawn = ""
    for part in parts:
        drawn += _block(part) if part else drawn[-1:] or " "
    return drawn


def _block(part: Sequence[float | None]) -> str:
    known = [height for height in part if height is not None]
    if len(known) < len(part):
        return NOT_FINITE
    return BLOCKS[min(int(sum(known) / len(known) * len(BLOCKS)), len(BLOCKS) - 1)]


def series(values: Sequence[float], least: float, most: float) -> str:
    """The points of a row's numbers, from left to right; those that are not finite are left out."""
    span, wide, high = most - least or 1.0, (WIDTH - 2 * EDGE) / max(len(values) - 1, 1), HEIGHT - 2 * EDGE
    known = [(i, value) for i, value in enumerate(values) if math.isfinite(value)]
    return " ".join(f"{EDGE + wide * i:.1f},{EDGE + high * (1 - (value - least) / span):.1f}" for i, value in known)


def sparkline(values: Sequence[float]) -> str:
    """A row's numbers as one line of block characters."""
    parts = [values[i * len(values) // CHARACTERS : (i + 1) * len(values) // CHARACTERS] for i in range(CHARACTERS)]
    known = [value for value in values if math.isfinite(value)]
    least, span = min(known, default=0.0), (max(known, default=0.0) - min(known, default=0.0)) or 1.0
    shown = parts if len(values) > CHARACTERS else [[value] for value in values]
    return "".join(
        _block([(value - least) / span if math.isfinite(value) else None for value in part]) for part in shown if part
    )


def _heights(curve: Curve) -> list[float | None]:
    """0 to 1 for each value; None: not finite."""
    scale = math.log if is_logarithmic(curve) else float
    scaled = [scale(value) if math.isfinite(value) else None for value in curve.values]
    known = [value for value in scaled if value is not None] or [0.0]
    least, span = min(known), max(known) - min(known)
    is_flat = span <= 1e-9 * max(map(abs, known))  # a constant lies in the middle
    return [None if value is None else 0.5 if is_flat else (value - least) / span for value in scaled]
