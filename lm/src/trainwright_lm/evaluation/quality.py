"""Completion quality: scores of a model and its baselines on the same cuts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trainwright_lm.evaluation.cuts import Cut
from trainwright_lm.evaluation.metrics import Interval, differences, first_line, intervals, score

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
    cuts: Sequence[Cut],
    completers: Mapping[str, Completer],
    *,
    seed: int = 0,
    examples: int = 0,
    advance: Callable[[int], None] = lambda completions: None,
) -> Quality:
    """Score each completer on the same cuts and compare the first one with the others.

    Args:
        seed: For the bootstrap.
        examples: How many of the first completer's completions to keep, evenly spaced.
        advance: Called with the number of completions made.
    """
    texts: dict[str, list[str]] = {name: [] for name in completers}
    for name, complete in completers.items():
        for cut in cuts:
            texts[name].append(complete(cut))
            advance(1)
    scores = {name: score(texts[name], cuts) for name in completers}
    first, *others = completers
    return Quality(
        cuts=len(cuts),
        documents=len({cut.document for cut in cuts}),
        scores={name: intervals(scores[name], cuts, seed=seed) for name in completers},
        ahead={name: differences(scores[first], scores[name], cuts, seed=seed) for name in others},
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
