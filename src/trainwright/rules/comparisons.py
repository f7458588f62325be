"""Helpers for rules about the comparisons in a loop's evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from trainwright.stages import Comparison, EvaluationFacts


def equalities(evaluation: EvaluationFacts) -> Iterator[Comparison]:
    """The comparisons with == and !=."""
    return (c for c in evaluation.comparisons if c.operation != "-")


def on_scores(comparison: Comparison) -> bool:
    """Whether scores, not classes, are compared with classes."""
    if not comparison.whole_labels or not _of_classes(comparison):
        return False
    scores = comparison.predictions
    wide = len(scores.shape) > 1 and scores.shape[-1] > 1 and scores.shape == comparison.scores
    return (scores.is_float and not comparison.whole_predictions) or (
        wide and comparison.labels.shape == scores.shape[:-1]
    )


def _of_classes(comparison: Comparison) -> bool:
    """Whether the labels are classes that the model's scores could predict."""
    if comparison.right_share is None:
        return False
    labels = comparison.labels
    columns = prod(comparison.scores) // max(1, prod(labels.shape))
    return columns > 1 or not labels.is_float or (labels.minimum, labels.maximum) in ((0, 1), (0, 0), (1, 1))


def by_equality(comparison: Comparison) -> bool:
    """Whether real numbers are judged by how many equal their label."""
    return (
        comparison.predictions.is_float
        and comparison.labels.is_float
        and not comparison.whole_predictions
        and not on_scores(comparison)
        and (comparison.equal_share is not None or _refuses_continuous(comparison))
    )


def _refuses_continuous(comparison: Comparison) -> bool:
    return comparison.failure is not None and "continuous" in comparison.failure.message


def is_broadcast(comparison: Comparison) -> bool:
    """Whether equally many predictions and labels of different shapes were broadcast: (N, 1) and (N)."""
    left, right = comparison.predictions.shape, comparison.labels.shape
    count = prod(left)
    return len(left) != len(right) and count == prod(right) and count > 1 and prod(comparison.result) > count


def tell_comparison(comparison: Comparison) -> str:
    """ "scores of shape (64, 10) with labels of shape (64,)"."""
    return f"{comparison.predictions.shape} with labels of shape {comparison.labels.shape}"
