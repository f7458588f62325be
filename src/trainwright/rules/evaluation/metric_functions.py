"""Metric functions and comparisons that get something else than they can judge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from trainwright.core import Call, Fate, Finding, Fix, Number, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.rules.comparisons import by_equality, equalities, on_scores, tell_comparison
from trainwright.rules.fixes import safe, set_keyword
from trainwright.rules.metrics import (
    align,
    equal,
    fill_ignored,
    first_of,
    insensitive,
    is_class_metric,
    shapes,
    take_first_output,
)
from trainwright.stages import Comparison, EvaluationFacts, SetupFacts, SubstitutePredictions


@rule("TW701", Severity.ERROR)
def metrics_on_logits(evaluation: EvaluationFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A metric function that is wrong for scores and right for classes."""
    yield from _scores_in_loop(evaluation)
    classes = evaluation.when(SubstitutePredictions.CLASSES)
    ideal = evaluation.when(SubstitutePredictions.PERFECT_CLASSES)
    best = [name for name, value in ideal.items() if equal(value, 1.0) or equal(value, 0.0)]
    if not classes or not best or (evaluation.when(SubstitutePredictions.FIRST_OUTPUT) and evaluation.metrics_failure):
        return
    perfect, inverted = evaluation.when(SubstitutePredictions.PERFECT), evaluation.when(SubstitutePredictions.INVERTED)
    blind = [
        name
        for name in best
        if name in perfect
        and name in inverted
        and not equal(perfect[name], ideal[name])
        and equal(perfect[name], inverted[name])
    ]
    failure = evaluation.metrics_failure
    if failure is not None:
        seen = f"raised {failure.type}; it works on their argmax"
        proof = f"on the argmax over the last dimension it returns {first_of(classes)}"
    elif blind:
        name = blind[0]
        now = evaluation.returned.get(name, perfect[name])
        seen = f"returned {name} = {now:.4g}; on their argmax it is {classes.get(name, 0.0):.4g}"
        proof = (
            f"for scores that are right in every row, and for their opposite, it returns {name} = "
            f"{perfect[name]:.4g}; for the correct classes {ideal[name]:.4g}"
        )
    else:
        return
    labels = evaluation.labels
    yield Finding(
        message=f"{evaluation.metrics_by} got {shapes(evaluation)} and {seen}",
        measured={"scores": str(evaluation.predictions[0].shape), "labels": str(labels.shape) if labels else "none"},
        where=(failure.where if failure else None) or setup.place(Role.METRICS, Role.TRAINER),
        proof=Proof(proof),
        repair=Repair("take the argmax over the classes before the metrics", Seam.METRICS, _argmax),
        fix=_classes_instead(evaluation, setup),
    )


def _classes_instead(evaluation: EvaluationFacts, setup: SetupFacts) -> Fix:
    """What to write in the function; of a model with one output, the edit that passes classes to it."""
    does = f"write predictions = np.argmax(predictions, axis=-1) first in {evaluation.metrics_by}"
    trainer, built_by = setup.place(Role.TRAINER), setup.words.built_by
    if trainer is None or not built_by or len(evaluation.predictions) != 1:
        return safe(does)
    edits = set_keyword(trainer, "preprocess_logits_for_metrics", "lambda logits, labels: logits.argmax(-1)", built_by)
    return safe(f"{does}, or {setup.words.fewer_predictions}", edits)


def _scores_in_loop(evaluation: EvaluationFacts) -> Iterator[Finding]:
    for one in equalities(evaluation):
        if not on_scores(one):
            continue
        wide = prod(one.scores) > prod(one.labels.shape)
        classes = "the largest score in each row" if wide else "the sign of each score's distance to the middle"
        yield Finding(
            message=f"the evaluation compares {_compared_as(one)}; {classes} is right for {one.right_share:.1%}",
            measured={
                "scores": str(one.predictions.shape),
                "labels": str(one.labels.shape),
                "right_share": round(one.right_share or 0.0, 4),
            },
            where=one.where,
            proof=Proof(_numbers_seen(one)),
            fix=safe(
                "compare classes: write outputs.argmax(dim=1) == labels"
                if wide
                else "compare classes: write (outputs > 0) == labels for logits, (outputs > 0.5) for probabilities"
            ),
        )


def _compared_as(one: Comparison) -> str:
    if one.of_pair:
        labels = f"labels of shape {one.labels.shape}"
        return f"the pair of largest scores and places with {labels} by {one.operation}; a tuple equals no tensor"
    raised = f"raised {one.failure.type}" if one.failure else f"found {one.equal_share or 0.0:.1%} equal"
    return f"scores of shape {tell_comparison(one)} by {one.operation} and {raised}"


def _numbers_seen(one: Comparison) -> str:
    low, high = one.predictions.minimum or 0.0, one.predictions.maximum or 0.0
    kind = "integers" if one.whole_predictions else "non-integer numbers"
    return f"the comparison uses {kind} from {low:.3g} to {high:.3g}, but the labels are classes"


def _argmax(call: Call) -> Call:
    scores = call["predictions"]
    scores = scores[0] if isinstance(scores, tuple) else scores
    return call.replace(predictions=scores.argmax(-1) if scores.ndim > 1 else scores)


# A distance-based metric rates predictions that are right to a thousandth higher than one half.
LOST_SHARE = 0.5


@rule("TW707", Severity.ERROR)
def mismatched_metric(evaluation: EvaluationFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A metric that counts equal values, applied to real-valued labels."""
    yield from _reals_in_loop(evaluation)
    name = _equality_metric(evaluation)
    failure = evaluation.metrics_failure
    if refuses_continuous(evaluation) and failure is not None:
        seen, proof = (f"raised {failure}", "the labels are not integers, but the metric function counts equal classes")
    elif name:
        near = evaluation.when(SubstitutePredictions.NEAR_ALIGNED).get(name, evaluation.returned.get(name, 0.0))
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


def _reals_in_loop(evaluation: EvaluationFacts) -> Iterator[Finding]:
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


def _equality_metric(evaluation: EvaluationFacts) -> str | None:
    if not evaluation.continuous_labels:
        return None
    perfect, near = (
        evaluation.when(SubstitutePredictions.PERFECT_ALIGNED),
        evaluation.when(SubstitutePredictions.NEAR_ALIGNED),
    )
    for name, best in perfect.items():
        if equal(best, 1.0) and near.get(name, 1.0) < LOST_SHARE:
            return name
    if insensitive(evaluation):
        return next((n for n, v in evaluation.returned.items() if is_class_metric(n) and equal(v, 0.0)), None)
    return None


@dataclass(frozen=True)
class Cure:
    """Other arguments on which the function works."""

    given: SubstitutePredictions
    says: str
    does: str
    repair: Repair


CURES = (
    Cure(
        SubstitutePredictions.FIRST_OUTPUT,
        "it works on the first of them",
        "write predictions = predictions[0] first in compute_metrics",
        take_first_output(),
    ),
    Cure(
        SubstitutePredictions.ALIGNED,
        "it works on predictions in the shape of the labels",
        "write predictions = predictions.reshape(labels.shape) first in compute_metrics",
        align(),
    ),
    Cure(
        SubstitutePredictions.ZERO_FOR_IGNORED,
        "with another number in their place it works",
        "leave labels of -100 out of the metrics; to decode, write np.where(labels != -100, labels, pad_token_id)",
        fill_ignored(),
    ),
)


@rule("TW702", Severity.ERROR, foretells=Fate.STOPS)
def crashing_metrics(evaluation: EvaluationFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A metric function that raises for a reason that no other rule covers."""
    failure = evaluation.metrics_failure
    if evaluation.in_loop:
        yield from _raised_in_loop(evaluation)
        return
    named = metrics_on_logits.function(evaluation, setup)
    if failure is None or refuses_continuous(evaluation) or next(iter(named), None) is not None:
        return
    cure = next((c for c in CURES if evaluation.when(c.given)), None)
    ignored = f"; {evaluation.ignored_share:.0%} of the labels are -100" if evaluation.ignored_share else ""
    labels = evaluation.labels
    measured: dict[str, Number] = {
        "predictions": ", ".join(str(p.shape) for p in evaluation.predictions),
        "labels": str(labels.shape) if labels else "none",
    }
    if ignored:
        measured["ignored_share"] = round(evaluation.ignored_share, 3)
    does = f"make {evaluation.metrics_by} accept these shapes" + (", and leave out labels of -100" if ignored else "")
    if not evaluation.metrics_named:
        does = 'return a dict from compute_metrics: {"accuracy": value}'
    yield Finding(
        message=f"{evaluation.metrics_by} got {shapes(evaluation)} and raised {failure}{ignored}"
        + (f"; {cure.says}" if cure else ""),
        measured=measured,
        where=failure.where or setup.place(Role.METRICS, Role.TRAINER),
        proof=Proof(
            f"given {cure.given} it returns {first_of(evaluation.when(cure.given))}"
            if cure
            else "it was called on the model's predictions for evaluation rows, before any training"
        ),
        repair=cure.repair if cure else None,
        fix=Fix(does=cure.does if cure else does, safety=Safety.SAFE if cure else Safety.MANUAL),
    )


def _raised_in_loop(evaluation: EvaluationFacts) -> Iterator[Finding]:
    failure = evaluation.metrics_failure
    failed = next((c for c in evaluation.comparisons if c.failure is not None), None)
    pairs = any(c.of_pair and on_scores(c) for c in evaluation.comparisons)
    if failure is None or pairs or (failed is not None and (on_scores(failed) or by_equality(failed))):
        return
    met = f" comparing predictions of shape {tell_comparison(failed)}" if failed is not None else ""
    yield Finding(
        message=f"the evaluation raised {failure}{met}",
        measured={"raised": failure.type},
        where=failure.where,
        proof=Proof("it was run as the script has it"),
        fix=Fix(does="make the evaluation accept these shapes" if met else "fix the evaluation before the long run"),
    )
