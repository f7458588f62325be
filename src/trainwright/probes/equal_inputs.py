"""Whether all rows of the first batches have the same inputs, although their labels differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from trainwright.stages.batch import EqualInputs

Rows = tuple[Mapping[str, np.ndarray], np.ndarray]
"""The inputs of a batch by name, each (rows, …), and its labels (rows, …)."""


def equal_inputs(batches: Sequence[Rows]) -> EqualInputs | None:
    """Return what all rows have in common; None if their inputs differ, or if an input has no axis for the rows."""
    first: dict[str, np.ndarray] = {}
    labels: set[bytes] = set()
    rows = 0
    for inputs, targets in batches:
        if not inputs or any(not v.ndim or len(v) != len(targets) or not len(v) for v in inputs.values()):
            return None
        first = first or {name: values[0] for name, values in inputs.items()}
        if inputs.keys() != first.keys() or not all(_repeats(v, first[name]) for name, v in inputs.items()):
            return None
        labels |= {row.tobytes() for row in np.ascontiguousarray(targets)}
        rows += len(targets)
    if not first:
        return None
    return EqualInputs(rows=rows, labels=len(labels), zero=not any(row.any() for row in first.values()))


def _repeats(values: np.ndarray, row: np.ndarray) -> bool:
    return values.shape[1:] == row.shape and bool((values == row).all())
