"""What a metric function gives for other predictions than the model's: aligned and perfect ones, classes, and guesses (a constant
answer, and labels in random order)."""

from __future__ import annotations

import contextlib
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np

from trainwright.core.guess import Guess
from trainwright.stages import IGNORED_LABEL, SubstitutePredictions
from trainwright.timing import now

# A score that is unambiguous relative to zero or, after a sigmoid or softmax, to one half.
SURE = 10.0
# Predictions off by this fraction of the labels' deviation are right by every measure except equality.
SLIGHT = 1e-3
# Substitutes are made for at most this many scores: more would take seconds and gigabytes.
MOST_SCORES = 50_000_000
# Guesses are made for fewer; of a random answer there are so many draws (of 32 rows, the mean of eight is within 0.03 of a share).
MOST_GUESSED, DRAWS = 5_000_000, 8
# A metric function that takes longer is not called for all of them.
SECONDS = 0.5
# Shares are kept this far from 0 and 1 before their logarithm is taken.
CLIPPED = 1e-6
# Of a random answer that is sure, these say how sure it is, not how wrong.
_OF_SURENESS = re.compile(r"loss|nll|entropy|perplexity|brier|calibration|\bece\b")


def others(predictions: Any, labels: Any) -> dict[SubstitutePredictions, Any]:
    """Substitutes for the predictions, which are one array or a tuple of several outputs, each (N, …)."""
    scores = predictions[0] if isinstance(predictions, tuple) and predictions else predictions
    found: dict[SubstitutePredictions, Any] = {}
    if not _are_known(scores, labels, MOST_SCORES):
        return found
    if isinstance(predictions, tuple):
        found[SubstitutePredictions.FIRST_OUTPUT] = scores
    if scores.shape[:-1] == labels.shape and scores.shape[-1] > 1:
        found |= _of_classes(scores, labels)
    elif scores.size == labels.size:
        found |= _of_values(scores, labels)
    if isinstance(predictions, tuple):
        for given in (
            SubstitutePredictions.PERFECT,
            SubstitutePredictions.INVERTED,
            SubstitutePredictions.PERFECT_TWO_COLUMNS,
            SubstitutePredictions.TWO_COLUMNS,
        ):
            if given in found:
                found[given] = (found[given], *predictions[1:])
    return found


def _of_classes(scores: np.ndarray, labels: np.ndarray) -> dict[SubstitutePredictions, Any]:
    """Perfect scores (…, C) for class labels (…)."""
    found: dict[SubstitutePredictions, Any] = {SubstitutePredictions.CLASSES: scores.argmax(-1)}
    live = labels[labels != IGNORED_LABEL]
    if labels.dtype.kind == "f" or not live.size or live.min() < 0 or live.max() >= scores.shape[-1]:
        return found
    classes = np.where(labels == IGNORED_LABEL, 0, labels)
    perfect = np.full(scores.shape, -SURE, dtype=np.float32)
    np.put_along_axis(perfect, classes[..., None], SURE, axis=-1)
    return {
        **found,
        SubstitutePredictions.PERFECT: perfect,
        SubstitutePredictions.INVERTED: -perfect,
        SubstitutePredictions.PERFECT_CLASSES: classes,
    }


def _of_values(scores: np.ndarray, labels: np.ndarray) -> dict[SubstitutePredictions, Any]:
    """One score per label: a regression, one output for two classes, or several labels per row."""
    truth = labels.astype(np.float32)
    binary = bool(np.isin(labels, (0, 1)).all())
    if binary and not (scores.min() >= 0 and scores.max() <= 1):
        truth = np.where(labels == 1, SURE, -SURE).astype(np.float32)
    slight = SLIGHT * float(truth.std()) * np.where(np.arange(truth.size) % 2, 1, -1).reshape(truth.shape)
    found: dict[SubstitutePredictions, Any] = {
        SubstitutePredictions.ALIGNED: scores.reshape(labels.shape),
        SubstitutePredictions.PERFECT: truth.reshape(scores.shape),
        SubstitutePredictions.PERFECT_ALIGNED: truth,
        SubstitutePredictions.NEAR_ALIGNED: (truth + slight).astype(np.float32),
        SubstitutePredictions.INVERTED: -truth.reshape(scores.shape),
    }
    if scores.ndim == 2 and scores.shape[1] == 1 and binary:
        middle = 0.5 if truth.max() <= 1 else 0.0
        for given, column in (
            (SubstitutePredictions.TWO_COLUMNS, scores),
            (SubstitutePredictions.PERFECT_TWO_COLUMNS, found[SubstitutePredictions.PERFECT]),
        ):
            found[given] = np.concatenate([np.full_like(column, middle), column], axis=1)
    return found


def score_guesses(predictions: Any, labels: Any, ask: Callable[[Any], Mapping[str, float]]) -> dict[str, Guess]:
    """What each of a function's metrics is for guesses in the form of these predictions; empty if none can be made.

    Args:
        predictions: one array, or a tuple whose first one holds the answers, each (N, …).
        labels: (N, …).
        ask: the metrics of other predictions; it may raise what the user's function raises.
    """
    scores = predictions[0] if isinstance(predictions, tuple) and predictions else predictions
    if not _are_known(scores, labels, MOST_GUESSED):
        return {}
    answers = list(_guesses(scores, labels))
    if not answers:
        return {}

    def asked(answer: np.ndarray) -> Mapping[str, float]:
        return ask((answer, *predictions[1:]) if isinstance(predictions, tuple) else answer)

    until = now() + SECONDS
    try:
        constant = asked(answers[0])
        drawn = [asked(answer) for answer in answers[1:] if now() < until]
    except Exception:  # the user's function takes no such answers: then nothing is said
        return {}
    found = {name: Guess(constant=_finite(value), random=_mean(name, drawn)) for name, value in constant.items()}
    return {name: guess for name, guess in found.items() if guess != Guess()}


def _are_known(scores: Any, labels: Any, most: int) -> bool:
    if not isinstance(scores, np.ndarray) or not isinstance(labels, np.ndarray) or scores.size > most:
        return False
    kinds = scores.dtype.kind in "fiu" and labels.dtype.kind in "fiub"
    return kinds and bool(len(labels)) and len(scores) == len(labels)


def _guesses(scores: np.ndarray, labels: np.ndarray) -> Iterator[np.ndarray]:
    """A constant answer, then random ones, in the form of the scores."""
    generator = np.random.default_rng(0)
    if scores.ndim == labels.ndim + 1 and scores.shape[:-1] == labels.shape and scores.shape[-1] > 1:
        yield from _guesses_of_classes(scores, labels, generator)
    elif scores.size == labels.size:
        yield from _guesses_of_values(scores, labels, generator)


def _guesses_of_classes(scores: np.ndarray, labels: np.ndarray, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """Scores (…, C) for class labels (…)."""
    live = labels != IGNORED_LABEL
    known = labels[live]
    if labels.dtype.kind == "f" or not known.size or known.min() < 0 or known.max() >= scores.shape[-1]:
        return
    shares = np.bincount(known.astype(np.int64), minlength=scores.shape[-1]) / known.size
    sums_to_one = bool((scores >= 0).all()) and bool(np.allclose(scores.sum(-1), 1, atol=1e-3))
    each = shares if sums_to_one else np.log(np.maximum(shares, CLIPPED))
    yield np.broadcast_to(each, scores.shape).astype(np.float32)
    for _ in range(DRAWS):
        classes = np.zeros(labels.shape, dtype=np.int64)
        classes[live] = generator.permutation(known)
        drawn = np.full(scores.shape, 0.0 if sums_to_one else -SURE, dtype=np.float32)
        np.put_along_axis(drawn, classes[..., None], 1.0 if sums_to_one else SURE, axis=-1)
        yield drawn


def _guesses_of_values(scores: np.ndarray, labels: np.ndarray, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """One score per label: a class, a number, a score of yes, or several of these for each row."""
    live = labels != IGNORED_LABEL if labels.dtype.kind in "iu" else np.ones(labels.shape, dtype=bool)
    known = labels[live]
    if not known.size or not bool(np.isfinite(known).all()):
        return
    whole = scores.dtype.kind in "iu"
    yes_or_no = not whole and bool(np.isin(known, (0, 1)).all())
    unit = bool((scores >= 0).all() and (scores <= 1).all())
    if whole:
        values, counts = np.unique(known, return_counts=True)
        yield np.full(scores.shape, values[counts.argmax()], dtype=scores.dtype)
    elif yes_or_no:
        shares = labels.astype(np.float64).mean(0) if live.all() else np.asarray(known.mean())
        logits = np.log(np.maximum(shares, CLIPPED) / np.maximum(1 - shares, CLIPPED))
        yield np.broadcast_to(shares if unit else logits, labels.shape).reshape(scores.shape).astype(np.float32)
    else:
        mean = labels.astype(np.float64).mean(0) if live.all() else np.asarray(known.mean())
        yield np.broadcast_to(mean, labels.shape).reshape(scores.shape).astype(np.float32)
    for _ in range(DRAWS):
        drawn = np.array(labels)
        drawn[live] = generator.permutation(known, axis=0)
        if live.all():
            drawn = generator.permutation(labels, axis=0)
        if yes_or_no and not unit:
            yield np.where(drawn == 1, SURE, -SURE).reshape(scores.shape).astype(np.float32)
        else:
            yield drawn.reshape(scores.shape).astype(scores.dtype)


def _mean(name: str, drawn: list[Mapping[str, float]]) -> float | None:
    if _OF_SURENESS.search(name.lower()) or not drawn or any(name not in one for one in drawn):
        return None
    return _finite(fmean(one[name] for one in drawn))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


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
