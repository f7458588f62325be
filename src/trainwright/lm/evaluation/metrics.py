"""How close a completion is to the original line, and means of that with bootstrap intervals."""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz import fuzz

from trainwright.lm.evaluation.cuts import Cut

METRICS = ("exact_match", "edit_similarity", "identifier_match")
CONFIDENCE = 0.95
# Efron and Tibshirani, An Introduction to the Bootstrap (1993), 14.2: 1,000 or more for percentiles; ours are cheap.
_RESAMPLES = 2000

# Strings and comments, which hold no identifiers; numbers, whose letters are none; names.
_PIECE = re.compile(
    r"""(?:[rbuft]{0,2})(?:"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)|\#.*|\d\w*|(?P<name>[^\W\d]\w*)""", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A mean with its 95% bootstrap interval, all from 0 to 1 (differences from -1 to 1)."""

    mean: float
    low: float
    high: float


def exact_match(completion: str, cut: Cut) -> float:
    """1 if the rest of the line is the reference's, but for space at its end; else 0."""
    return float(first_line(completion) == cut.rest)


def edit_similarity(completion: str, cut: Cut) -> float:
    """Share of characters that stay when one text is made the other by insertions and deletions.

    rapidfuzz's `ratio`, as CrossCodeEval (Ding and others, 2023) and RepoBench (Liu and others, 2023) take fuzzywuzzy's.
    """
    return float(fuzz.ratio(first_line(completion), cut.rest)) / 100


def identifier_match(completion: str, cut: Cut) -> float:
    """F1 of the identifiers of the completion against those of the reference, each as often as it stands there.

    After CrossCodeEval's identifier match (Ding and others, 2023), which counts each once. Keywords and what stands in
    strings are no identifiers. NaN if the reference has none: the cut does not count.
    """
    wanted = Counter(identifiers(cut.typed, cut.rest))
    if not wanted:
        return float("nan")
    given = Counter(identifiers(cut.typed, first_line(completion)))
    return 2 * (wanted & given).total() / (wanted.total() + given.total())


def identifiers(typed: str, rest: str) -> list[str]:
    """The identifiers of a line that end within its rest, the one that is cut in two as a whole."""
    found = _PIECE.finditer(typed + rest)
    names = [match for match in found if match["name"] and match.end() > len(typed)]
    return [match["name"] for match in names if not keyword.iskeyword(match["name"])]


def first_line(completion: str) -> str:
    """The completion up to its first end of line, without space at its end."""
    return completion.split("\n", 1)[0].rstrip()


def score(completions: Sequence[str], cuts: Sequence[Cut]) -> np.ndarray:
    """Every metric of every completion: (cuts, metrics), NaN where a metric says nothing about a cut."""
    metrics = (exact_match, edit_similarity, identifier_match)
    rows = [[metric(text, cut) for metric in metrics] for text, cut in zip(completions, cuts, strict=True)]
    return np.array(rows, dtype=np.float64).reshape(-1, len(METRICS))


def intervals(scores: np.ndarray, cuts: Sequence[Cut], *, seed: int = 0) -> dict[str, Interval]:
    """Mean and interval of every metric; what is drawn again and again are documents, not cuts.

    Lines of one document resemble each other: intervals from cuts alone would be too narrow (the cluster bootstrap:
    Davison and Hinkley, Bootstrap Methods and their Application, 1997, 3.8). Of a single document nothing follows for
    others: 0 to 1.

    Args:
        scores: (cuts, metrics), as `score` gives them.
        cuts: Theirs.
        seed: The same gives the same intervals.
    """
    return {
        name: _interval(scores[:, i], np.zeros(len(cuts)), cuts, seed, lowest=0.0) for i, name in enumerate(METRICS)
    }


def differences(scores: np.ndarray, others: np.ndarray, cuts: Sequence[Cut], *, seed: int = 0) -> dict[str, Interval]:
    """How far the scores lie above others of the same cuts, with intervals of the same draws of documents."""
    return {name: _interval(scores[:, i], others[:, i], cuts, seed, lowest=-1.0) for i, name in enumerate(METRICS)}


def _interval(scores: np.ndarray, others: np.ndarray, cuts: Sequence[Cut], seed: int, *, lowest: float) -> Interval:
    values = scores - others
    counted = ~np.isnan(values)
    if not counted.any():
        return Interval(mean=float("nan"), low=lowest, high=1.0)
    documents = np.array([cut.document for cut in cuts])[counted]
    numbers, cluster = np.unique(documents, return_inverse=True)
    sums = np.bincount(cluster, weights=values[counted])
    sizes = np.bincount(cluster)
    mean = float(sums.sum() / sizes.sum())
    if len(numbers) < 2:
        return Interval(mean=mean, low=lowest, high=1.0)
    generator = np.random.default_rng(seed)
    draws = generator.multinomial(len(numbers), np.full(len(numbers), 1 / len(numbers)), size=_RESAMPLES)
    means = (draws @ sums) / (draws @ sizes)
    edge = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, [edge, 1 - edge])
    # The quantiles of a mean that is the same in all draws may differ from it by rounding.
    return Interval(mean=mean, low=min(float(low), mean), high=max(float(high), mean))
