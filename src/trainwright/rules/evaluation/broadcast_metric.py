"""TW705 broadcast-metric: predictions (N, 1) and labels (N) are broadcast to (N, N) in the metric.

Why it matters: No error is raised, and the number says nothing about the model. An accuracy can exceed 1.
Evidence: Perfect predictions in the model's shape do not get the best score; in the labels' shape, they do. In a loop:
the shapes of both sides of a comparison or difference, and of its result.
Fix (safe): Give both the same shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from trainwright.core import Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.rules.comparisons import align_where_as_many, is_broadcast, on_scores
from trainwright.rules.metrics import align, equal
from trainwright.stages import EvaluationFacts, Given, SetupFacts


@rule("TW705", Severity.ERROR)
def broadcast_metric(evaluation: EvaluationFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A metric that is right for aligned predictions and wrong for the same predictions in the model's shape."""
    yield from _in_loop(evaluation)
    if not evaluation.predictions or evaluation.labels is None or evaluation.metrics_failure:
        return
    scores, labels = evaluation.predictions[0].shape, evaluation.labels.shape
    perfect, aligned = evaluation.when(Given.PERFECT), evaluation.when(Given.PERFECT_ALIGNED)
    wrong = [
        name
        for name, best in aligned.items()
        if name in perfect and not equal(perfect[name], best) and _best(name, best, evaluation)
    ]
    if scores == labels or not wrong:
        return
    name = wrong[0]
    returned = evaluation.returned.get(name, perfect[name])
    right = evaluation.when(Given.ALIGNED).get(name, returned)
    yield Finding(
        message=f"{evaluation.metrics_by} got scores of shape {scores} and labels of shape {labels} and returned "
        f"{name} = {returned:.4g}" + (f"; with equal shapes it is {right:.4g}" if not equal(returned, right) else ""),
        measured={"scores": str(scores), "labels": str(labels), "returned": returned},
        where=setup.place(Role.METRICS, Role.TRAINER),
        proof=Proof(
            f"for perfect predictions of shape {scores} it returns {name} = {perfect[name]:.4g}, for the same "
            f"ones of shape {labels} {aligned[name]:.4g}"
        ),
        repair=align(),
        fix=Fix(
            does=f"write predictions = predictions.reshape(labels.shape) first in {evaluation.metrics_by}",
            safety=Safety.SAFE,
        ),
    )


def _in_loop(evaluation: EvaluationFacts) -> Iterator[Finding]:
    for one in evaluation.comparisons:
        if not is_broadcast(one) or on_scores(one):
            continue
        rows, pairs = prod(one.labels.shape), prod(one.result)
        yield Finding(
            message=f"the evaluation takes predictions of shape {one.predictions.shape} {one.operation} labels of shape "
            f"{one.labels.shape}, which gives {one.result}: {pairs:,} pairs for {rows:,} rows",
            measured={
                "predictions": str(one.predictions.shape),
                "labels": str(one.labels.shape),
                "result": str(one.result),
            },
            where=one.where,
            proof=Proof(
                f"each prediction was combined with each label: the result has {pairs / rows:g} elements per row"
            ),
            repair=align_where_as_many(),
            fix=Fix(
                does="give both the same shape: predictions.squeeze(-1), or labels.view_as(predictions)",
                safety=Safety.SAFE,
            ),
        )


def _best(name: str, value: float, evaluation: EvaluationFacts) -> bool:
    """Whether a value is the best that a metric can have (score 1, error 0), other than by exact equality of reals."""
    near = evaluation.when(Given.NEAR_ALIGNED).get(name)
    exact = evaluation.continuous_labels and near is not None and abs(near - value) > 0.5
    return (equal(value, 1.0) or equal(value, 0.0)) and not exact
