"""TW707 mismatched-metric: real-valued predictions are scored by how many equal their label exactly.

Why it matters: The accuracy of a regression is 0 even for the best model, so it cannot be used to choose anything.
Evidence: The labels are not integers, and predictions that are off by a thousandth of the labels' standard deviation
score 0.
Error: `Classification metrics can't handle a mix of continuous`
Error: `continuous is not supported`
Fix (manual): Use a metric based on distances: mean absolute or squared error, R², Pearson's correlation.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Severity, rule
from trainwright.rules.comparisons import by_equality, equalities
from trainwright.rules.metrics import equal, insensitive, is_class_metric
from trainwright.stages import EvaluationFacts, Given, SetupFacts

# A distance-based metric rates predictions that are right to a thousandth higher than one half.
LOST_SHARE = 0.5


@rule("TW707", Severity.ERROR)
def mismatched_metric(evaluation: EvaluationFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A metric that counts equal values, applied to real-valued labels."""
    yield from _in_loop(evaluation)
    name = _by_equality(evaluation)
    failure = evaluation.metrics_failure
    if refuses_continuous(evaluation) and failure is not None:
        seen, proof = (f"raised {failure}", "the labels are not integers, but the metric function counts equal classes")
    elif name:
        near = evaluation.when(Given.NEAR_ALIGNED).get(name, evaluation.returned.get(name, 0.0))
        seen = f"returned {name} = {evaluation.returned.get(name, near):.4g}"
        proof = f"for predictions off by a thousandth of the labels' standard deviation, {name} is {near:.4g}"
    else:
        return
    labels = evaluation.labels
    low, high = (labels.minimum, labels.maximum) if labels else (None, None)
    span = f"real numbers from {low:.4g} to {high:.4g}" if low is not None and high is not None else "real numbers"
    yield Finding(
        message=f"the labels are {span}, and {evaluation.metrics_by}, which counts equal ones, {seen}",
        measured={"labels": span},
        where=(failure.where if failure else None) or setup.place(Role.METRICS, Role.TRAINER),
        proof=Proof(proof),
        fix=Fix(does=f"measure distances in {evaluation.metrics_by}: mean_absolute_error, r2_score or pearsonr"),
    )


def _in_loop(evaluation: EvaluationFacts) -> Iterator[Finding]:
    for one in equalities(evaluation):
        if not by_equality(one):
            continue
        low, high = one.labels.minimum or 0.0, one.labels.maximum or 0.0
        seen = f"raised {one.failure.type}" if one.failure else f"found {one.equal_share or 0.0:.1%}"
        yield Finding(
            message=f"the evaluation counts how many of {one.predictions.shape} real numbers equal their label "
            f"({low:.4g} to {high:.4g}) and {seen}",
            measured={"predictions": str(one.predictions.shape), "equal_share": round(one.equal_share or 0.0, 4)},
            where=one.where,
            proof=Proof("the predictions are not integers, so they equal their labels only by chance"),
            fix=Fix(does="measure distances: (predictions - labels).abs().mean(), the squared error, or R²"),
        )


def refuses_continuous(evaluation: EvaluationFacts) -> bool:
    """Whether the metric function raised because its labels are real-valued."""
    failure = evaluation.metrics_failure
    return (
        failure is not None
        and evaluation.continuous_labels
        and ("continuous" in failure.message or failure.message.startswith("Classification metrics"))
    )


def _by_equality(evaluation: EvaluationFacts) -> str | None:
    if not evaluation.continuous_labels:
        return None
    perfect, near = evaluation.when(Given.PERFECT_ALIGNED), evaluation.when(Given.NEAR_ALIGNED)
    for name, best in perfect.items():
        if equal(best, 1.0) and near.get(name, 1.0) < LOST_SHARE:
            return name
    if insensitive(evaluation):
        return next((n for n, v in evaluation.returned.items() if is_class_metric(n) and equal(v, 0.0)), None)
    return None
