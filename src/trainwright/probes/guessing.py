"""What guessing would give: a metric function's own values for a constant answer, and for labels in random order."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from statistics import fmean
from typing import Any

import numpy as np

from trainwright.core.guess import Guess
from trainwright.timing import now

# Draws of a random answer: of 32 rows, the mean of eight is within 0.03 of a share.
DRAWS = 8
# A metric function that takes longer is not called for all of them.
SECONDS = 0.5
MOST_SCORES = 5_000_000
# A score that is unambiguous relative to zero, as in `probes/metrics.py`.
SURE = 10.0
# Shares are kept this far from 0 and 1 before their logarithm is taken.
CLIPPED = 1e-6
IGNORED = -100
# Of a random answer that is sure, these say how sure it is, not how wrong.
_OF_SURENESS = re.compile(r"loss|nll|entropy|perplexity|brier|calibration|\bece\b")


def guessed(predictions: Any, labels: Any, ask: Callable[[Any], Mapping[str, float]]) -> dict[str, Guess]:
    """What each of a function's metrics is for guesses in the form of these predictions; empty if none can be made.

    Args:
        predictions: one array, or a tuple whose first one holds the answers, each (N, …).
        labels: (N, …).
        ask: the metrics of other predictions; it may raise what the user's function raises.
    """
    scores = predictions[0] if isinstance(predictions, tuple) and predictions else predictions
    if not _are_known(scores, labels):
        return {}
    answers = list(_answers(scores, labels))
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


def _are_known(scores: Any, labels: Any) -> bool:
    if not isinstance(scores, np.ndarray) or not isinstance(labels, np.ndarray) or scores.size > MOST_SCORES:
        return False
    kinds = scores.dtype.kind in "fiu" and labels.dtype.kind in "fiub"
    return kinds and bool(len(labels)) and len(scores) == len(labels)


def _answers(scores: np.ndarray, labels: np.ndarray) -> Iterator[np.ndarray]:
    """A constant answer, then random ones, in the form of the scores."""
    generator = np.random.default_rng(0)
    if scores.ndim == labels.ndim + 1 and scores.shape[:-1] == labels.shape and scores.shape[-1] > 1:
        yield from _of_classes(scores, labels, generator)
    elif scores.size == labels.size:
        yield from _of_values(scores, labels, generator)


def _of_classes(scores: np.ndarray, labels: np.ndarray, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """Scores (…, C) for class labels (…)."""
    live = labels != IGNORED
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


def _of_values(scores: np.ndarray, labels: np.ndarray, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """One score per label: a class, a number, a score of yes, or several of these for each row."""
    live = labels != IGNORED if labels.dtype.kind in "iu" else np.ones(labels.shape, dtype=bool)
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
