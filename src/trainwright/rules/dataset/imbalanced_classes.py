"""TW109 imbalanced-classes: one class dominates, and the model predicts nothing else, or hardly anything.

Why it matters: The accuracy looks good, but a model that has learned nothing would reach it too. The rare class,
usually the one that matters, is never found.
Evidence: The counts of the labels, and the predictions after a short run whose loss is that of the class frequencies, or after
the whole training. It is more than a note if, on the same rows and over more steps, a class-weighted loss tells the classes
apart on three seeds while the unweighted loss does not. A note is also what a planned training leaves that was run to its
end: one answer for nearly all held-out rows, among which that class is far from as frequent.
Fix (unsafe): Use class weights in the loss, or a sampler. Judge by a metric that counts each class (balanced accuracy,
F1).
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

import numpy as np

from trainwright.core import Call, Diagnosis, Finding, Fix, Repair, Role, Safety, Seam, Severity, rule
from trainwright.core.thresholds import DOMINATES
from trainwright.core.trial import WRONG_SHARE_A_CLASS, Outcome, Trial
from trainwright.stages import DatasetFacts, LabelFacts, LearningFacts, LossFacts, SetupFacts

# Twelve passes over the same four batches: by then, a model that can tell the classes apart knows the rare rows.
STEPS = 48
BATCHES = 4
# If all rows are predicted as one of two classes, the balanced error is one half; so few errors are not chance.
TOLD_APART = 0.3
# The share of the rows that predicting one class gets wrong; a single memorized rare row does not count.
STUCK = 0.9
# The share of held-out rows that get the same answer, and how much rarer that class is among their labels, at least.
NEARLY_ALL, MUCH_RARER = 0.9, 0.75
_CLASS_LOSSES = ("cross_entropy", "nll_loss")


@rule("TW109", Severity.WARNING)
def imbalanced_classes(
    dataset: DatasetFacts,
    loss: LossFacts,
    setup: SetupFacts,
    learning: LearningFacts | None,
) -> Diagnosis:
    """A dominant class, and a model that predicts nothing else."""
    labels, call = dataset.train.labels, loss.call
    if labels is None or call is None or call.function not in _CLASS_LOSSES or call.options.get("has_weight"):
        return
    if not _dominated(labels) or not loss.targets_are_labels:
        return
    trained = learning.trained if learning is not None else None
    if trained is not None and trained.answers_only(_major(labels)):
        alone = f"after {trained.updates:,} updates the model answers nothing else"
        measured = {"updates": trained.updates, "loss": trained.loss, "loss_of_constant": trained.constant}
    else:
        if learning is not None and (answered := _answered(learning, _major(labels))):
            yield _finding(labels, {}, setup, answered)
        return
    outcome = None
    if (change := _weigh(labels, loss.classes or 0, call.function)) is not None:
        outcome = yield Trial(change=change, steps=STEPS, batches=BATCHES, judged_by=WRONG_SHARE_A_CLASS)
    told = outcome is not None and outcome.clearly_better and max(outcome.after) <= TOLD_APART
    stuck = outcome is not None and bool(outcome.before) and min(outcome.before) >= STUCK * (1 - 1 / labels.classes)
    told_apart = outcome if told and stuck else None
    yield _finding(labels, measured, setup, alone, told_apart, change)


def _answered(learning: LearningFacts, major: int | float | str) -> str:
    """What the planned training answers for held-out rows, if that is hardly anything but the dominant class."""
    last = learning.last
    most = last.most_answered if last is not None else None
    if last is None or most is None or learning.shown or not (learning.whole or learning.had_its_chance):
        return ""
    if most.answer != major or most.share < NEARLY_ALL or most.of_labels > MUCH_RARER * most.share:
        return ""
    return (
        f"after {last.updates:,} updates the model answers it for {most.share:.0%} of {learning.rows:,} rows that it was "
        f"not trained on, of which {most.of_labels:.0%} have it"
    )


def _major(labels: LabelFacts) -> int | float | str:
    return max(labels.census, key=lambda value: labels.census[value])


def _dominated(labels: LabelFacts) -> bool:
    return labels.kind == "class" and labels.classes > 1 and labels.majority_share >= DOMINATES


def _finding(
    labels: LabelFacts,
    measured: Mapping[str, float],
    setup: SetupFacts,
    seen: str,
    outcome: Outcome | None = None,
    change: Repair | None = None,
) -> Finding:
    share, major = labels.majority_share, _major(labels)
    name = f" ({labels.class_names[major]})" if isinstance(major, int) and 0 <= major < len(labels.class_names) else ""
    message = (
        f"{share:.1%} of {sum(labels.census.values()):,} training labels are {major}{name}: always predicting it has an "
        f"accuracy of {share:.1%}, and {seen}"
    )
    if outcome is not None:
        message += f"; with class weights, {1 - fmean(outcome.after):.0%} of the rows per class are right"
    return Finding(
        severity=Severity.WARNING if outcome else Severity.NOTE,
        message=message,
        measured={
            "majority_share": round(share, 4),
            "accuracy_of_constant": round(share, 4),
            **{name: round(value, 4) for name, value in measured.items()},
        },
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER),
        proof=outcome,
        repair=change if outcome else None,
        fix=Fix(
            does="weight the classes in the loss (weight = rows / (classes x count)) or sample rare ones more often, and "
            "judge by balanced accuracy or F1 in addition to accuracy",
            safety=Safety.UNSAFE,
        ),
    )


def _weigh(labels: LabelFacts, classes: int, function: str) -> Repair | None:
    """Weight the loss by the inverse class frequencies; classes without rows get weight 1."""
    if not all(isinstance(v, int) and 0 <= v < classes for v in labels.census):
        return None
    total = sum(labels.census.values())
    weights = np.ones(classes, dtype=np.float32)
    for value, count in labels.census.items():
        weights[int(value)] = total / (labels.classes * count)

    def change(call: Call) -> Call:
        if call["function"] != function or call.given.get("weight") is not None:
            return call
        return call.replace(weight=call.tensors.like(weights, call["logits"]))

    return Repair("weight the classes by the inverse of their frequency", Seam.LOSS, change)
