"""Completion quality: how close the completions of a model and its baselines are to the original lines."""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz import fuzz

from trainwright_lm.evaluation.cuts import Cut
from trainwright_lm.progress import tracked

CONFIDENCE = 0.95
# Efron and Tibshirani, An Introduction to the Bootstrap (1993), 14.2, ask for 1,000 or more; ours are cheap.
_RESAMPLES = 2000

# Strings and comments, whose words are not identifiers; numbers, whose letters are not; names.
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
    """1 if the rest of the line equals the reference, apart from trailing space; otherwise 0."""
    return float(first_line(completion) == cut.rest)


def edit_similarity(completion: str, cut: Cut) -> float:
    """The fraction of characters that remain when one text is turned into the other by insertions and deletions.

    This is rapidfuzz's `ratio`; CrossCodeEval (Ding and others, 2023) and RepoBench (Liu and others, 2023) use
    fuzzywuzzy's.
    """
    return float(fuzz.ratio(first_line(completion), cut.rest)) / 100


def identifier_match(completion: str, cut: Cut) -> float:
    """F1 of the completion's identifiers against the reference's, counted with multiplicity.

    Based on CrossCodeEval's identifier match (Ding and others, 2023), which counts each identifier once. Keywords and
    words in strings do not count. NaN if the reference has no identifiers: the cut is ignored.
    """
    wanted = Counter(identifiers(cut.typed, cut.rest))
    if not wanted:
        return float("nan")
    given = Counter(identifiers(cut.typed, first_line(completion)))
    return 2 * (wanted & given).total() / (wanted.total() + given.total())


METRICS = {"exact_match": exact_match, "edit_similarity": edit_similarity, "identifier_match": identifier_match}


def identifiers(typed: str, rest: str) -> list[str]:
    """The identifiers of a line that end in its rest; one that the cut splits is included whole."""
    found = _PIECE.finditer(typed + rest)
    names = [match for match in found if match["name"] and match.end() > len(typed)]
    return [match["name"] for match in names if not keyword.iskeyword(match["name"])]


def first_line(completion: str) -> str:
    """The completion up to its first line end, without trailing space."""
    return completion.split("\n", 1)[0].rstrip()


def score(completions: Sequence[str], cuts: Sequence[Cut]) -> np.ndarray:
    """Every metric of every completion: (cuts, metrics), NaN if a metric is undefined for a cut."""
    rows = [[metric(text, cut) for metric in METRICS.values()] for text, cut in zip(completions, cuts, strict=True)]
    return np.array(rows, dtype=np.float64).reshape(-1, len(METRICS))


def intervals(
    scores: np.ndarray, cuts: Sequence[Cut], *, others: np.ndarray | None = None, seed: int = 0
) -> dict[str, Interval]:
    """The mean and interval of every metric, bootstrapping over documents rather than cuts.

    Lines of one document resemble each other, so intervals over cuts would be too narrow (the cluster bootstrap:
    Davison and Hinkley, Bootstrap Methods and their Application, 1997, 3.8). A single document says nothing about
    others, so its interval is 0 to 1.

    Args:
        scores: (cuts, metrics), from `score`.
        cuts: The cuts of these scores.
        others: Other scores of the same cuts: the intervals are then those of the difference from these.
        seed: The same seed gives the same intervals.
    """
    lowest, values = (0.0, scores) if others is None else (-1.0, scores - others)
    return {name: _interval(values[:, i], cuts, seed, lowest=lowest) for i, name in enumerate(METRICS)}


def _interval(values: np.ndarray, cuts: Sequence[Cut], seed: int, *, lowest: float) -> Interval:
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
    # Rounding can move the quantiles away from a mean that is the same in all samples.
    return Interval(mean=mean, low=min(float(low), mean), high=max(float(high), mean))


# Completes the line of a cut; only the first line of its answer counts.
Completer = Callable[[Cut], str]


@dataclass(frozen=True, kw_only=True)
class Example:
    """An example of a completion."""

    typed: str
    """The line up to the cut."""
    rest: str
    """The original rest of the line."""
    completion: str
    """The model's completion."""


@dataclass(frozen=True, kw_only=True)
class Quality:
    """Results for one kind of cut."""

    cuts: int
    documents: int
    """Documents that contain these cuts."""
    scores: Mapping[str, Mapping[str, Interval]]
    """By completer (model, ngram, network, ngram_alone, frequent), then by metric."""
    ahead: Mapping[str, Mapping[str, Interval]]
    """By other completer, then by metric: the model's score minus the other's."""
    libraries: Mapping[str, Mapping[str, float]]
    """For library calls, by library: the number of cuts, and each completer's fraction of exact matches."""
    examples: Sequence[Example]


def measure_quality(
    cuts: Sequence[Cut], completers: Mapping[str, Completer], *, seed: int = 0, examples: int = 0
) -> Quality:
    """Score each completer on the same cuts and compare the first one with the others.

    Args:
        seed: For the bootstrap.
        examples: How many of the first completer's completions to keep, evenly spaced.
    """
    texts = {name: [complete(cut) for cut in tracked(name, cuts)] for name, complete in completers.items()}
    scores = {name: score(texts[name], cuts) for name in completers}
    first, *others = completers
    return Quality(
        cuts=len(cuts),
        documents=len({cut.document for cut in cuts}),
        scores={name: intervals(scores[name], cuts, seed=seed) for name in completers},
        ahead={name: intervals(scores[first], cuts, others=scores[name], seed=seed) for name in others},
        libraries=_by_library(scores, cuts),
        examples=_examples(cuts, texts[first], examples),
    )


def _by_library(scores: Mapping[str, np.ndarray], cuts: Sequence[Cut]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for library in sorted({cut.library for cut in cuts} - {""}):
        own = np.array([cut.library == library for cut in cuts])
        exact = {name: float(table[own, 0].mean()) for name, table in scores.items()}
        found[library] = {"cuts": int(own.sum()), **exact}
    return found


def _examples(cuts: Sequence[Cut], texts: Sequence[str], most: int) -> list[Example]:
    """Some of the cuts, evenly spaced."""
    count = min(most, len(cuts))
    return [
        Example(typed=cuts[i].typed, rest=cuts[i].rest, completion=first_line(texts[i]))
        for i in (n * len(cuts) // count for n in range(count))
    ]
