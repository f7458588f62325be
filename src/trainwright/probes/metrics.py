"""Substitute arguments for testing a metric function: aligned predictions, classes, perfect predictions."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from trainwright.stages.evaluation import Given

# A score that is unambiguous relative to zero or, after a sigmoid or softmax, to one half.
SURE = 10.0
# Predictions off by this fraction of the labels' deviation are right by every measure except equality.
SLIGHT = 1e-3
IGNORED = -100
# Substitutes are made for at most this many scores: more would take seconds and gigabytes.
MOST_SCORES = 50_000_000


def others(predictions: Any, labels: Any) -> dict[Given, Any]:
    """Substitutes for the predictions, which are one array or a tuple of several outputs, each (N, …)."""
    scores = predictions[0] if isinstance(predictions, tuple) and predictions else predictions
    found: dict[Given, Any] = {}
    if not isinstance(scores, np.ndarray) or not isinstance(labels, np.ndarray) or scores.size > MOST_SCORES:
        return found
    if (
        scores.dtype.kind not in "fiu"
        or labels.dtype.kind not in "fiub"
        or not len(labels)
        or len(scores) != len(labels)
    ):
        return found
    if isinstance(predictions, tuple):
        found[Given.FIRST_OUTPUT] = scores
    if scores.shape[:-1] == labels.shape and scores.shape[-1] > 1:
        found |= _of_classes(scores, labels)
    elif scores.size == labels.size:
        found |= _of_values(scores, labels)
    if isinstance(predictions, tuple):
        for given in (Given.PERFECT, Given.INVERTED, Given.PERFECT_TWO_COLUMNS, Given.TWO_COLUMNS):
            if given in found:
                found[given] = (found[given], *predictions[1:])
    return found


def _of_classes(scores: np.ndarray, labels: np.ndarray) -> dict[Given, Any]:
    """Perfect scores (…, C) for class labels (…)."""
    found: dict[Given, Any] = {Given.CLASSES: scores.argmax(-1)}
    live = labels[labels != IGNORED]
    if labels.dtype.kind == "f" or not live.size or live.min() < 0 or live.max() >= scores.shape[-1]:
        return found
    classes = np.where(labels == IGNORED, 0, labels)
    perfect = np.full(scores.shape, -SURE, dtype=np.float32)
    np.put_along_axis(perfect, classes[..., None], SURE, axis=-1)
    return {**found, Given.PERFECT: perfect, Given.INVERTED: -perfect, Given.PERFECT_CLASSES: classes}


def _of_values(scores: np.ndarray, labels: np.ndarray) -> dict[Given, Any]:
    """One score per label: a regression, one output for two classes, or several labels per row."""
    truth = labels.astype(np.float32)
    binary = bool(np.isin(labels, (0, 1)).all())
    if binary and not (scores.min() >= 0 and scores.max() <= 1):
        truth = np.where(labels == 1, SURE, -SURE).astype(np.float32)
    slight = SLIGHT * float(truth.std()) * np.where(np.arange(truth.size) % 2, 1, -1).reshape(truth.shape)
    found: dict[Given, Any] = {
        Given.ALIGNED: scores.reshape(labels.shape),
        Given.PERFECT: truth.reshape(scores.shape),
        Given.PERFECT_ALIGNED: truth,
        Given.NEAR_ALIGNED: (truth + slight).astype(np.float32),
        Given.INVERTED: -truth.reshape(scores.shape),
    }
    if scores.ndim == 2 and scores.shape[1] == 1 and binary:
        middle = 0.5 if truth.max() <= 1 else 0.0
        for given, column in ((Given.TWO_COLUMNS, scores), (Given.PERFECT_TWO_COLUMNS, found[Given.PERFECT])):
            found[given] = np.concatenate([np.full_like(column, middle), column], axis=1)
    return found


def as_many(array: Any, rows: int) -> Any:
    """The rows of an array, or of each array in a tuple, repeated until there are this many."""
    if isinstance(array, tuple):
        return tuple(as_many(a, rows) for a in array)
    return array[np.arange(rows) % len(array)] if isinstance(array, np.ndarray) else array


def numbers(metrics: Any) -> dict[str, float]:
    """The numbers that a metric function returned; a plain number gets its type's name."""
    if not isinstance(metrics, Mapping):
        return {}
    kinds = (int, float, np.number, np.bool_)
    return {str(k): float(v) for k, v in metrics.items() if isinstance(v, kinds)}


@contextlib.contextmanager
def undone(function: Any) -> Iterator[None]:
    """Print nothing, and restore the lists, counters and accumulators that a function writes to."""
    kept = list(_kept(function))
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            yield
        finally:
            for put_back in kept:
                put_back()


def _kept(function: Any) -> Iterator[Callable[[], None]]:
    code = getattr(function, "__code__", None)
    scope = getattr(function, "__globals__", {})
    values = [c.cell_contents for c in getattr(function, "__closure__", None) or () if _filled(c)]
    for name in code.co_names if code else ():
        if name in scope:
            values.append(scope[name])
            if isinstance(scope[name], (int, float, str, tuple, type(None))):
                yield partial(scope.__setitem__, name, scope[name])
    values += [function, getattr(function, "__self__", None)]
    for value in values:
        if isinstance(value, list):
            yield partial(value.__setitem__, slice(None), list(value))
        elif isinstance(value, (dict, set)):
            yield partial(_refill, value, value.copy())
        elif hasattr(value, "reset") and hasattr(value, "update") and hasattr(value, "__dict__"):
            yield partial(_refill, value.__dict__, _copied(value.__dict__))


def _refill(value: Any, kept: Any) -> None:
    value.clear()
    value.update(kept)


def _filled(cell: Any) -> bool:
    with contextlib.suppress(ValueError):  # a cell of a name that is not bound yet
        return cell.cell_contents is not None
    return False


def _copied(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes with copied tensors and lists, because accumulators change them in place."""
    return {
        k: v.clone() if hasattr(v, "clone") else list(v) if isinstance(v, list) else v for k, v in attributes.items()
    }
