"""The labels of one set: their kind, their classes and how often each occurs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np

from trainwright.probes.splits.values import first_rows, first_values, plain_number, plain_values, runs_of, same_size
from trainwright.stages import IGNORED_LABEL, MOST_CLASSES, BatchOrder, LabelFacts

# Fewer batches, or rows in one, may have a single class by chance.
FEWEST_BATCHES, FEWEST_IN_BATCH = 4, 8


def measure_labels(
    column: str, values: Sequence[Any], class_names: Sequence[str] = (), *, one_hot: bool = False
) -> LabelFacts:
    """Return the counts of a label column; for vectors and tokens, of at most CENSUS_LABELS rows.

    Args:
        one_hot: treat one-hot rows as classes.
    """
    base: dict[str, Any] = {"column": column, "class_names": tuple(class_names)}
    if one_hot and isinstance(values, np.ndarray) and is_one_hot(values):
        base |= {"rows_read": len(values)}
        classes = values.argmax(axis=1)
        found = _measure_numeric_labels(classes, [classes], base)
        return replace(found, per_row=values.shape[1])
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iufb":
        return _measure_numeric_labels(values, [values], base | {"rows_read": len(values)})
    present = [v for v in plain_values(first_values(values)) if v is not None]
    base["rows_read"] = len(present)
    if not present:
        return LabelFacts(kind="missing", **base)
    if isinstance(present[0], str):
        return LabelFacts(
            kind="text",
            census=Counter(v for v in present if isinstance(v, str)),
            counted=len(present),
            first_rows=first_rows(present),
            **base,
        )
    try:
        arrays = [np.asarray(v) for v in present]
    except ValueError:  # ragged lists within a row
        return LabelFacts(kind="other", counted=len(present), **base)
    if arrays[0].dtype.kind not in "iufb":
        kind = "text" if arrays[0].dtype.kind in "US" else "other"
        return LabelFacts(kind=kind, counted=len(present), **base)
    flat = np.concatenate([a.reshape(-1) for a in arrays]) if arrays[0].ndim else np.asarray(present)
    return _measure_numeric_labels(flat, arrays, base)


def is_one_hot(values: np.ndarray) -> bool:
    """Whether each row has two or more columns, with a single 1 and otherwise 0."""
    if values.ndim != 2 or values.shape[1] < 2 or not len(values) or values.dtype.kind not in "iufb":
        return False
    return bool(np.all((values == 0) | (values == 1)) and np.all(values.sum(axis=1) == 1))


def _measure_numeric_labels(flat: np.ndarray, arrays: Sequence[np.ndarray], base: dict[str, Any]) -> LabelFacts:
    """The counts of numeric labels; `arrays` has one array per row, or is a whole column of single numbers."""
    column = len(arrays) == 1 and arrays[0] is flat
    base |= {"per_row": 1 if column else int(median(a.size for a in arrays))}
    live = flat[flat != IGNORED_LABEL] if flat.dtype.kind in "iu" else flat
    finite = live[np.isfinite(live)] if live.dtype.kind == "f" else live
    if finite.size:
        base |= {"mean": float(finite.mean()), "deviation": float(finite.std())}
    one_a_row = column or arrays[0].ndim == 0 or (arrays[0].size == 1 and max(a.size for a in arrays) == 1)
    whole = finite.size > 0 and bool(np.all(finite == np.round(finite)))
    distinct, counts = np.unique(finite, return_counts=True)
    if one_a_row and whole and distinct.size <= min(MOST_CLASSES, max(2, finite.size // 2 + 1)):
        kind = "class"
    elif not one_a_row and distinct.size <= 2 and set(distinct.tolist()) <= {0, 1} and same_size(arrays):
        kind = "multi-hot"
    elif not one_a_row and flat.dtype.kind in "iu":
        kind = "tokens"
    else:
        return LabelFacts(kind="real", counted=int(flat.size), **base)
    runs = runs_of(flat) if kind == "class" else (0.0, 0.0)
    first: Mapping[int | float | str, int] = {}
    if kind == "class":
        values, rows = np.unique(flat, return_index=True)
        first = {plain_number(v): int(r) for v, r in zip(values, rows) if np.isfinite(v)}
    return LabelFacts(
        kind=kind,
        census={plain_number(v): int(n) for v, n in zip(distinct, counts)},
        first_rows=first,
        counted=int(live.size),
        ignored=int(flat.size - live.size),
        mean_run=runs[0],
        expected_run=runs[1],
        **base,
    )


def batch_order(batches: Sequence[np.ndarray]) -> BatchOrder | None:
    """How classes are spread over consecutive batches; None unless each row of each has one whole number."""
    if any(b.ndim != 1 for b in batches):
        return None
    batches = [b for b in batches if len(b) >= FEWEST_IN_BATCH]
    if len(batches) < FEWEST_BATCHES:
        return None
    together = np.concatenate(batches)
    if together.dtype.kind not in "iub" and not np.all(together == np.round(together)):
        return None
    counts = np.unique(together, return_counts=True)[1]
    shares = [np.unique(b, return_counts=True)[1].max() / len(b) for b in batches]
    return BatchOrder(
        batches=len(batches),
        rows=float(np.mean([len(b) for b in batches])),
        majority=float(np.mean(shares)),
        classes=len(counts),
        most_frequent=float(counts.max() / counts.sum()),
    )


def batch_majority(labels: Sequence[Any], batch_size: int) -> float | None:
    """Mean share of the most frequent value in batches of consecutive labels; None for fewer than two batches."""
    array = np.asarray(labels)
    if array.ndim != 1 or batch_size < 2 or len(array) < 2 * batch_size:
        return None
    whole = array[: len(array) // batch_size * batch_size].reshape(-1, batch_size)
    return float(np.mean([np.unique(b, return_counts=True)[1].max() / batch_size for b in whole]))
