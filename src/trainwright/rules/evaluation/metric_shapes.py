"""Metrics that go wrong by the shapes of what they get."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from trainwright.core import Call, Finding, Proof, Repair, Role, Seam, Severity, rule
from trainwright.rules.comparisons import equalities, is_broadcast, on_scores
from trainwright.rules.fixes import safe, unsafe
from trainwright.rules.metrics import align, equal, first_of, insensitive
from trainwright.stages import EvaluationFacts, SetupFacts, SubstitutePredictions


@rule("TW704", Severity.ERROR)
def argmax_of_one_column(evaluation: EvaluationFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Metrics that do not depend on the scores, but do once there are two columns."""
    yield from _argmax_in_loop(evaluation)
    perfect = evaluation.when(SubstitutePredictions.PERFECT_TWO_COLUMNS)
    if not insensitive(evaluation) or len(evaluation.label_values) < 2:
        return
    if not any(equal(v, 1.0) for v in perfect.values()):
        return
    same = first_of(evaluation.returned)
    yield Finding(
        message=f"{evaluation.metrics_by} takes the argmax of {evaluation.predictions[0].shape} scores, one per row: "
        f"it is 0 for every row, and {same} whatever the scores",
        measured={"columns": 1, "rows": evaluation.predictions[0].shape[0]},
        where=setup.place(Role.METRICS, Role.TRAINER),
        proof=Proof(
            f"perfect scores and their opposite both give {same}; as two columns, perfect scores give "
            f"{first_of(perfect)}"
        ),
        repair=Repair("pass two columns to the metrics, the threshold and the score", Seam.METRICS, _two_columns),
        fix=unsafe("write predictions = (logits[:, 0] > 0).astype(int) instead of the argmax"),
    )


def _argmax_in_loop(evaluation: EvaluationFacts) -> Iterator[Finding]:
    for one in equalities(evaluation):
        labels = one.labels
        if one.columns != 1 or one.predictions.maximum != 0 or labels.minimum == labels.maximum:
            continue
        right = f"; with a threshold it is {one.right_share:.1%}" if one.right_share is not None else ""
        share = f"{one.equal_share:.1%} of the labels are 0" if one.equal_share is not None else "it is 0"
        yield Finding(
            message=f"the argmax is taken over 1 score per row: it is 0 for each of "
            f"{one.predictions.shape[0]} rows, and the accuracy is the share of class 0",
            measured={"columns": 1, "rows": one.predictions.shape[0], "scores": str(one.scores)},
            where=one.indexed_at or one.where,
            proof=Proof(f"all predictions are 0 and {share}, which is the accuracy{right}"),
            fix=unsafe("write (outputs.squeeze(1) > 0).long() instead of the argmax (0.5 for probabilities)"),
        )


def _two_columns(call: Call) -> Call:
    scores = call["predictions"]
    scores = scores[0] if isinstance(scores, tuple) else scores
    if scores.ndim < 2:  # another comparison, of what was made of the scores
        return call
    middle = 0.5 if scores.min() >= 0 and scores.max() <= 1 else 0.0
    return call.replace(predictions=np.concatenate([np.full_like(scores, middle), scores], axis=1))


@rule("TW705", Severity.ERROR)
def broadcast_metric(evaluation: EvaluationFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A metric that is right for aligned predictions and wrong for the same predictions in the model's shape."""
    yield from _broadcast_in_loop(evaluation)
    if not evaluation.predictions or evaluation.labels is None or evaluation.metrics_failure:
        return
    scores, labels = evaluation.predictions[0].shape, evaluation.labels.shape
    perfect, aligned = (
        evaluation.when(SubstitutePredictions.PERFECT),
        evaluation.when(SubstitutePredictions.PERFECT_ALIGNED),
    )
    wrong = [
        name
        for name, best in aligned.items()
        if name in perfect and not equal(perfect[name], best) and _best(name, best, evaluation)
    ]
    if scores == labels or not wrong:
        return
    name = wrong[0]
    returned = evaluation.returned.get(name, perfect[name])
    right = evaluation.when(SubstitutePredictions.ALIGNED).get(name, returned)
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
        fix=safe(f"write predictions = predictions.reshape(labels.shape) first in {evaluation.metrics_by}"),
    )


def _broadcast_in_loop(evaluation: EvaluationFacts) -> Iterator[Finding]:
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
            fix=safe("give both the same shape: predictions.squeeze(-1), or labels.view_as(predictions)"),
        )


def _best(name: str, value: float, evaluation: EvaluationFacts) -> bool:
    """Whether a value is the best that a metric can have (score 1, error 0), other than by exact equality of reals."""
    near = evaluation.when(SubstitutePredictions.NEAR_ALIGNED).get(name)
    exact = evaluation.continuous_labels and near is not None and abs(near - value) > 0.5
    return (equal(value, 1.0) or equal(value, 0.0)) and not exact
