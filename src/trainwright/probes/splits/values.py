"""The values of one column: as plain values, the first ones, and the lengths of runs."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any, TypeVar

import numpy as np

from trainwright.stages import CENSUS_LABELS, Split

T = TypeVar("T")


def first_values(values: Sequence[Any]) -> Sequence[Any]:
    """All values of a column of single values; the first CENSUS_LABELS rows if rows are sequences."""
    single = len(values) > 0 and (
        isinstance(values[0], (str, int, float, type(None)))
        or (not isinstance(values[0], (list, tuple)) and np.ndim(values[0]) == 0)
    )
    return values if single else values[:CENSUS_LABELS]


def plain_values(values: Sequence[Any]) -> Sequence[Any]:
    """Torch tensors and similar objects as numpy arrays; scalars unchanged."""
    if isinstance(values, np.ndarray):
        return values
    return [v.detach().cpu().numpy() if hasattr(v, "numpy") and hasattr(v, "detach") else v for v in values]


def is_text(name: str, split: Split) -> bool:
    """Whether a column contains text."""
    return bool(split.items) and isinstance(split.items[0].get(name), str)


def runs_of(labels: np.ndarray) -> tuple[float, float]:
    """The mean run length, and its expected value for shuffled labels: 1 / (1 - sum p^2)."""
    if labels.size < 2:
        return 1.0, 1.0
    runs = 1 + int((labels[1:] != labels[:-1]).sum())
    shares = np.unique(labels, return_counts=True)[1] / labels.size
    same = float((shares**2).sum())
    return labels.size / runs, labels.size / (1 + (labels.size - 1) * (1 - same))


def first_rows(values: Sequence[Any]) -> dict[Any, int]:
    """The first row with each value."""
    seen: dict[Any, int] = {}
    for row, value in enumerate(values):
        seen.setdefault(value, row)
    return seen


def lengths_of(sizes: list[int]) -> dict[str, Any]:
    """The median length, as a field of ColumnFacts."""
    return {"median_length": float(median(sizes))}


def same_size(arrays: Sequence[np.ndarray]) -> bool:
    """Whether all rows have equally many numbers."""
    return all(a.size == arrays[0].size for a in arrays)


def evenly(rows: Sequence[T], most: int) -> list[T]:
    """At most this many of the rows, evenly spaced."""
    count = min(len(rows), most)
    chosen = sorted({int(i) for i in np.linspace(0, len(rows) - 1, count)}) if count else []
    return [rows[i] for i in chosen]


def plain_number(value: Any) -> int | float:
    """A number, as an int if it is whole."""
    number = float(value)
    return int(number) if number.is_integer() else number
