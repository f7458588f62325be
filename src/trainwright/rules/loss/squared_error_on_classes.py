"""TW409 squared-error-on-classes: a classification is trained with a squared or absolute error.

Why it matters: Its gradient fades where a row is clearly wrong and pulls on rows that are already right, so classes are
learned slowly, rare ones last.
Evidence: The targets are one-hot rows, and after the same steps, the cross-entropy of the same scores leaves clearly
fewer rows in the wrong class; or they are class numbers, and a probe fits them no better than the same classes in any
other order. A note if neither is shown.
Fix (unsafe): Use cross_entropy with class indices, or binary_cross_entropy_with_logits for a single score.
"""

from __future__ import annotations

from statistics import fmean

from trainwright.core import Call, Diagnosis, Finding, Fix, Number, Place, Proof, Repair, Safety, Seam, Severity, rule
from trainwright.core.trial import WRONG_SHARE, Outcome, Trial
from trainwright.rules.places import loss_place
from trainwright.stages import Alignment, DatasetFacts, LossCall, LossFacts, OverfitFacts, SetupFacts

_ERRORS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
STEPS = 16
BATCHES = 4
# Share of the labels' variance that a probe leaves unexplained, in their own numbering and in others: quintiles of a
# disease's progression 0.53 and 0.91; ten digits 0.38 and 0.36; three kinds of wine 0.21 and 0.16, and if ordered by
# strength 0.12 and 0.20.
ERROR_RATIO = 0.97
FIT_RATIO = 1.05
# If a probe explains less, the numberings hardly differ.
MOST_UNEXPLAINED = 0.85


@rule("TW409", Severity.WARNING)
def squared_error_on_classes(
    loss: LossFacts, dataset: DatasetFacts, overfit: OverfitFacts, setup: SetupFacts
) -> Diagnosis:
    """A distance between scores and class numbers; a note if there is no evidence of harm."""
    call = loss.call
    if call is None or call.failure is not None or call.function not in _ERRORS or len(loss.calls) > 1:
        return
    where = loss_place(loss, setup)
    if call.targets_one_hot:
        outcome = None
        if not overfit.learnt:
            change = _cross_entropy(call)
            outcome = yield Trial(change=change, steps=STEPS, batches=BATCHES, judged_by=WRONG_SHARE)
        yield _of_one_hot(call, outcome if outcome and outcome.clearly_better else None, where)
    elif not loss.targets_are_labels:
        return  # what was read of the labels says nothing of what the loss makes of them
    elif _single(call) and _of_two(dataset):
        yield _of_binary(call, dataset, where)
    elif _single(call) and (seen := dataset.alignment) is not None and _arbitrary(seen):
        yield _of_numbers(call, seen, where)


def _of_one_hot(call: LossCall, outcome: Outcome | None, where: Place | None) -> Finding:
    classes = call.targets.shape[1]
    measured: dict[str, Number] = {"function": call.function, "classes": classes}
    message = f"{call.function} is computed from scores and one-hot rows of {classes} classes"
    if outcome is not None:
        message += (
            f": after {outcome.steps} updates {fmean(outcome.before):.0%} of the rows are in the wrong class, "
            f"and {fmean(outcome.after):.0%} with cross_entropy"
        )
        measured |= {
            "wrong_share": round(fmean(outcome.before), 3),
            "wrong_share_cross_entropy": round(fmean(outcome.after), 3),
        }
    return Finding(
        severity=Severity.WARNING if outcome else Severity.NOTE,
        message=message,
        measured=measured,
        where=where,
        proof=outcome,
        repair=_cross_entropy(call) if outcome else None,
        fix=Fix(
            does="compute cross_entropy of the scores (before a softmax) and the class indices", safety=Safety.UNSAFE
        ),
    )


def _of_binary(call: LossCall, dataset: DatasetFacts, where: Place | None) -> Finding:
    labels = dataset.train.labels
    return Finding(
        severity=Severity.NOTE,
        message=f"{call.function} is computed from labels that are 0 or 1 in all {labels.counted if labels else 0:,} rows",
        measured={"function": call.function, "classes": 2},
        where=where,
        fix=Fix(
            does="compute binary_cross_entropy_with_logits of the scores (before a sigmoid) and the labels",
            safety=Safety.UNSAFE,
        ),
    )


def _of_numbers(call: LossCall, seen: Alignment, where: Place | None) -> Finding:
    values = len(call.target_values)
    return Finding(
        message=f"{call.function} treats class numbers as a quantity: a probe leaves {seen.numbering_error:.0%} of "
        f"their variance unexplained, and {seen.other_numberings_error:.0%} when the classes are numbered differently",
        measured={
            "function": call.function,
            "distinct_labels": values,
            "unexplained": round(seen.numbering_error or 0.0, 3),
            "unexplained_otherwise": round(seen.other_numberings_error or 0.0, 3),
            "rows": seen.rows,
        },
        where=where,
        proof=Proof(
            f"on {seen.rows:,} rows, the labels are fitted no better than with the median of other "
            "numberings: their order means nothing"
        ),
        fix=Fix(does="give the model one output per class, and use int64 labels and cross_entropy"),
    )


def _arbitrary(seen: Alignment) -> bool:
    """Whether the numbering of the classes is arbitrary, if a probe learns enough to tell."""
    own, others = seen.numbering_error, seen.other_numberings_error
    if own is None or others is None or not seen.single or others > MOST_UNEXPLAINED:
        return False
    return own >= ERROR_RATIO * others and 1 - own <= FIT_RATIO * (1 - others)


def _single(call: LossCall) -> bool:
    """Whether each row has one score and one label."""
    scores, targets = call.inputs.shape, call.targets.shape
    one_a_row = targets in (scores[:1], (*scores[:1], 1))
    return one_a_row and scores in (targets, (*targets, 1)) and len(call.target_values) > 1


def _of_two(dataset: DatasetFacts) -> bool:
    """Whether all labels read are 0 or 1."""
    labels = dataset.train.labels
    return labels is not None and set(labels.census) == {0, 1}


def _cross_entropy(seen: LossCall) -> Repair:
    """The cross-entropy of the same scores; probabilities are converted back to scores."""
    function = seen.function

    def change(call: Call) -> Call:
        if call["function"] != function:
            return call
        scores = call["logits"]
        if seen.rows_sum_to_one:
            scores = call.tensors.log(scores)
        elif seen.activation == "sigmoid":
            scores = call.tensors.logit(scores)
        return call.replace(function="cross_entropy", logits=scores)

    return Repair("compute cross_entropy of the same scores", Seam.LOSS, change)
