"""TW701 metrics-on-logits: the metric function, or the accuracy in a loop, compares scores with labels.

Why it matters: It raises an error after a whole epoch, with a message only about shapes; or it raises nothing and
returns 0.
Evidence: Given (N, C) scores, it fails, or rates perfect ones and their opposite the same. Given classes, it works, and
rates the labels themselves best. In a loop: non-integer scores, or the pair of scores and places that max returns, are
compared with classes by ==.
Error: `operands could not be broadcast together with shapes`
Error: `only size-1 arrays can be converted to Python scalars`
Error: `Classification metrics can't handle a mix of`
Error: `The size of tensor a (…) must match the size of tensor b (…) at non-singleton dimension`
Error: `'bool' object has no attribute '…'`
Fix (safe): Take the argmax over the classes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Safety, Seam, SetKeyword, Severity, rule
from trainwright.rules.comparisons import can_be_mended, classes_instead, compared, equalities, on_scores
from trainwright.rules.metrics import equal, first_of, shapes
from trainwright.stages import Comparison, EvaluationFacts, Given, SetupFacts


@rule("TW701", Severity.ERROR)
def metrics_on_logits(evaluation: EvaluationFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A metric function that is wrong for scores and right for classes."""
    yield from _in_loop(evaluation)
    classes = evaluation.when(Given.CLASSES)
    ideal = evaluation.when(Given.PERFECT_CLASSES)
    best = [name for name, value in ideal.items() if equal(value, 1.0) or equal(value, 0.0)]
    if not classes or not best or (evaluation.when(Given.FIRST_OUTPUT) and evaluation.metrics_failure):
        return
    perfect, inverted = evaluation.when(Given.PERFECT), evaluation.when(Given.INVERTED)
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
        fix=_fix(evaluation, setup),
    )


def _fix(evaluation: EvaluationFacts, setup: SetupFacts) -> Fix:
    """What to write in the function; of a model with one output, the edit that passes classes to it."""
    does = f"write predictions = np.argmax(predictions, axis=-1) first in {evaluation.metrics_by}"
    trainer, built_by = setup.place(Role.TRAINER), setup.words.built_by
    if trainer is None or not built_by or len(evaluation.predictions) != 1:
        return Fix(does=does, safety=Safety.SAFE)
    edit = SetKeyword(
        trainer.file,
        trainer.line,
        "preprocess_logits_for_metrics",
        "lambda logits, labels: logits.argmax(-1)",
        function=built_by,
    )
    return Fix(does=f"{does}, or {setup.words.fewer_predictions}", safety=Safety.SAFE, edits=(edit,))


def _in_loop(evaluation: EvaluationFacts) -> Iterator[Finding]:
    for one in equalities(evaluation):
        if not on_scores(one):
            continue
        wide = prod(one.scores) > prod(one.labels.shape)
        classes = "the largest score in each row" if wide else "the sign of each score's distance to the middle"
        yield Finding(
            message=f"the evaluation compares {_what(one)}; {classes} is right for {one.right_share:.1%}",
            measured={
                "scores": str(one.predictions.shape),
                "labels": str(one.labels.shape),
                "right_share": round(one.right_share or 0.0, 4),
            },
            where=one.where,
            proof=Proof(_seen(one)),
            repair=classes_instead() if can_be_mended(one) else None,
            fix=Fix(
                does="compare classes: write outputs.argmax(dim=1) == labels"
                if wide
                else "compare classes: write (outputs > 0) == labels for logits, (outputs > 0.5) for probabilities",
                safety=Safety.SAFE,
            ),
        )


def _what(one: Comparison) -> str:
    if one.of_pair:
        labels = f"labels of shape {one.labels.shape}"
        return f"the pair of largest scores and places with {labels} by {one.operation}; a tuple equals no tensor"
    raised = f"raised {one.failure.type}" if one.failure else f"found {one.equal_share or 0.0:.1%} equal"
    return f"scores of shape {compared(one)} by {one.operation} and {raised}"


def _seen(one: Comparison) -> str:
    low, high = one.predictions.minimum or 0.0, one.predictions.maximum or 0.0
    kind = "integers" if one.whole_predictions else "non-integer numbers"
    return f"the comparison uses {kind} from {low:.3g} to {high:.3g}, but the labels are classes"


def _argmax(call: Call) -> Call:
    scores = call["predictions"]
    scores = scores[0] if isinstance(scores, tuple) else scores
    return call.replace(predictions=scores.argmax(-1) if scores.ndim > 1 else scores)
