"""Tables in the script that the training rows came from, and whether labels fit their inputs there."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from trainwright.adapters.data.reading import objects_in_scope
from trainwright.probes.labels.alignment import PLAINLY_LEARNT, measure_alignment
from trainwright.probes.splits.two_sets import table_of, values_of
from trainwright.stages import AlignedSource, Alignment, Split, SplitFacts

# The deciles of two samples of a few hundred rows of a column differ by at most this, in standard deviations.
SAME_QUANTILES = 0.3
SAME_SHARES = 0.06
# Deciles of this many rows are within 0.1 standard deviations of those of all rows, and rarely differ for few-valued
# ones.
QUANTILE_ROWS = 20_000
# Numeric targets keep their values: more than this share of them must occur in the table.
SAME_VALUES = 0.95
# Longer rows are images and signals, whose values cannot be told apart by their distributions.
MOST_FEATURES = 512
MOST_COLUMNS = 4 * MOST_FEATURES
MOST_ROWS = 100_000
# Mismatched pairs differ in at least one of this many rows, whatever the classes.
COMPARED_ROWS = 200
# A probe takes up to two seconds.
MOST_PROBED = 3

Table = Mapping[str, Any]
Source = tuple[str, list[np.ndarray], list[np.ndarray]]
"""How the script reaches a table, its columns of inputs, and its columns of labels."""


def aligned_source(
    split: Split, facts: SplitFacts, alignment: Alignment | None, names: Sequence[str], scope: Mapping[str, Any]
) -> AlignedSource | None:
    """A table with the same columns and labels, whose labels a probe can learn although it cannot learn training's."""
    labels = facts.labels
    if alignment is None or labels is None or alignment.score > PLAINLY_LEARNT:
        return None
    rows = range(min(facts.hashed, MOST_ROWS))
    inputs, targets = table_of(split, names, rows), values_of(split, labels.column, rows)
    if inputs is None or targets is None or targets.shape[1] != 1 or inputs.shape[1] > MOST_FEATURES:
        return None
    found = (
        AlignedSource(expression=expression, alignment=seen)
        for expression, table in itertools.islice(_like(inputs, targets[:, 0], labels.kind, scope), MOST_PROBED)
        if (seen := measure_alignment(table, "y", labels.kind)) is not None
    )
    return next((source for source in found if source.alignment.score > PLAINLY_LEARNT), None)


def _like(inputs: np.ndarray, targets: np.ndarray, kind: str, scope: Mapping[str, Any]) -> Iterator[tuple[str, Table]]:
    """The script's tables with columns distributed like the inputs, and one column distributed like the targets."""
    for expression, columns, others in _tables(scope):
        fitting = [o for o in others if _are_same_labels(targets, o, kind)]
        if len(fitting) != 1:  # if two columns resemble the labels, either may be the right one
            continue
        chosen = _matching(inputs, [c for c in columns if c is not fitting[0]])
        if chosen and not _pairs_alike(inputs, targets, table := np.stack(chosen, axis=1), fitting[0]):
            yield expression, {"x": table, "y": fitting[0]}


def _pairs_alike(inputs: np.ndarray, targets: np.ndarray, table: np.ndarray, labels: np.ndarray) -> bool:
    """Whether evenly spaced training rows occur in the table with the same labels as in training.

    If they do, probing the table would only repeat the result for training.
    """
    if inputs.shape[1] != table.shape[1]:
        return False
    known = {row.tobytes(): label for row, label in zip(table.astype(np.float32), labels)}
    some = np.linspace(0, len(inputs) - 1, min(len(inputs), COMPARED_ROWS)).astype(int)
    rows = inputs[some].astype(np.float32)
    return all(known.get(row.tobytes()) == target for row, target in zip(rows, targets[some]))


def _tables(scope: Mapping[str, Any]) -> Iterator[Source]:
    """Frames and arrays of inputs and labels in the script's scope or in one of its dictionaries."""
    named = list(objects_in_scope(scope))
    for one in named:
        if hasattr(one.value, "columns") and hasattr(one.value, "to_numpy"):
            columns = [c for n in one.value.columns if (c := _numbers(one.value[n])) is not None and c.ndim == 1]
            yield one.expression, columns, columns
    arrays = [(one.expression, a) for one in named if (a := _numbers(one.value)) is not None]
    for (left, table), (right, labels) in itertools.product(arrays, arrays):
        beside = left.partition("[")[0] == right.partition("[")[0] or "[" not in left + right
        if beside and table.ndim == 2 and labels.ndim == 1 and len(table) == len(labels):
            yield f"{left} and {right}", list(table.T), [labels]


def _numbers(value: Any) -> np.ndarray | None:
    """An array, tensor or column as a NumPy array, with categories as codes; None for anything else."""
    if not hasattr(value, "__array__") or not 1 <= len(getattr(value, "shape", ())) <= 2:
        return None
    with contextlib.suppress(Exception):  # an object that only looks like an array
        part = value[:MOST_ROWS]
        array = np.asarray(part.detach().cpu() if hasattr(part, "detach") else part)
        if array.ndim == 1 and array.dtype.kind in "OUS":
            array = np.unique(array.astype(str), return_inverse=True)[1]
        return array if array.dtype.kind in "iufb" and len(array) else None
    return None


def _matching(inputs: np.ndarray, columns: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The columns distributed like the input columns, at any scale; empty unless each input column has a match."""
    if not inputs.shape[1] <= len(columns) <= MOST_COLUMNS:
        return []
    wanted = np.stack([_quantiles(column) for column in inputs.T])
    like = [np.abs(_quantiles(c) - wanted).max(axis=1) < SAME_QUANTILES for c in columns]
    chosen = [c for c, same in zip(columns, like) if same.any()]
    return chosen if np.any(like, axis=0).all() and len(chosen) == len(wanted) else []


def _quantiles(column: np.ndarray) -> np.ndarray:
    """The deciles of evenly spaced rows, standardized."""
    few = column[np.linspace(0, len(column) - 1, min(len(column), QUANTILE_ROWS)).astype(int)]
    finite = few[np.isfinite(few)].astype(np.float64)
    if not len(finite):
        return np.zeros(9)
    deciles = np.quantile(finite, np.linspace(0.1, 0.9, 9))
    return np.asarray((deciles - finite.mean()) / (finite.std() or 1.0))


def _are_same_labels(own: np.ndarray, other: np.ndarray, kind: str) -> bool:
    if kind == "real":
        return bool(np.isin(own.astype(np.float32), other.astype(np.float32)).mean() > SAME_VALUES)
    left, right = (np.sort(np.unique(v, return_counts=True)[1]) / len(v) for v in (own, other))
    return len(left) == len(right) and bool(np.abs(left - right).max() < SAME_SHARES)
