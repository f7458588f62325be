"""The classes of the training rows: dominant ones, and missing ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

import numpy as np

from trainwright.core import Call, Diagnosis, Finding, Fix, Outcome, Proof, Repair, Role, Seam, Severity, Trial, rule
from trainwright.core.thresholds import DOMINATES
from trainwright.core.trial import WRONG_SHARE_A_CLASS
from trainwright.rules.class_labels import lacks_labels, refuses_unlabelled, without_labels
from trainwright.rules.dataset.sorted_rows import classifies, is_sorted_split
from trainwright.rules.fixes import unsafe
from trainwright.stages import CLASS_LOSSES, DatasetFacts, LabelFacts, LearningFacts, LossFacts, SetupFacts

# Twelve passes over the same four batches: by then, a model that can tell the classes apart knows the rare rows.
STEPS = 48
BATCHES = 4
# If all rows are predicted as one of two classes, the balanced error is one half; so few errors are not chance.
TOLD_APART = 0.3
# The share of the rows that predicting one class gets wrong; a single memorized rare row does not count.
STUCK = 0.9
# The share of held-out rows that get the same answer, and how much rarer that class is among their labels, at least.
NEARLY_ALL, MUCH_RARER = 0.9, 0.75


@rule("TW109", Severity.WARNING)
def imbalanced_classes(
    dataset: DatasetFacts, loss: LossFacts, setup: SetupFacts, learning: LearningFacts | None
) -> Diagnosis:
    """A dominant class, and a model that predicts nothing else."""
    labels, call = dataset.train.labels, loss.call
    if labels is None or call is None or call.function not in CLASS_LOSSES or call.options.get("has_weight"):
        return
    if not _dominated(labels) or not loss.targets_are_labels:
        return
    trained = learning.trained if learning is not None else None
    if trained is not None and trained.answers_only(_major(labels)):
        alone = f"after {trained.updates:,} updates the model answers nothing else"
        measured = {"updates": trained.updates, "loss": trained.loss, "loss_of_constant": trained.constant}
    else:
        if learning is not None and (answered := _answered(learning, _major(labels))):
            yield _dominant(labels, {}, setup, answered)
        return
    outcome = None
    if (change := _weigh_classes(labels, loss.classes or 0, call.function)) is not None:
        outcome = yield Trial(change=change, steps=STEPS, batches=BATCHES, judged_by=WRONG_SHARE_A_CLASS)
    told = outcome is not None and outcome.clearly_better and max(outcome.after) <= TOLD_APART
    stuck = outcome is not None and bool(outcome.before) and min(outcome.before) >= STUCK * (1 - 1 / labels.classes)
    told_apart = outcome if told and stuck else None
    yield _dominant(labels, measured, setup, alone, told_apart, change)


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


def _dominant(
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
        fix=unsafe(
            "weight the classes in the loss (weight = rows / (classes x count)) or sample rare ones more often, and "
            "judge by balanced accuracy or F1 in addition to accuracy"
        ),
    )


def _weigh_classes(labels: LabelFacts, classes: int, function: str) -> Repair | None:
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


# If both sets have the same distribution, a class with 7 expected rows is absent once in e^7 = 1,100 times.
FEWEST_EXPECTED = 7.0
# For a declared class, only the mean number of rows per class is known; this many leave no doubt.
FEWEST_ROWS_A_CLASS = 20
# Rows of one class teach nothing, however few they are.
FEWEST_ROWS_ALONE = 8
# So many evaluation rows are wrong whatever was learned: no chance of a small sample makes up for that.
COSTLY, FEWEST_EVALUATED = 0.2, 40
# So rarely would all evaluation rows have one class by chance.
BY_CHANCE = 1e-6
# More outputs than classes: a head of a vocabulary's size has many that no row needs.
MOST_OUTPUTS = 50


@rule("TW110", Severity.WARNING)
def missing_classes(dataset: DatasetFacts, setup: SetupFacts, loss: LossFacts | None) -> Iterator[Finding]:
    """A class in the evaluation set, or a declared class, without training rows."""
    labels = dataset.train.labels
    if labels is None or labels.kind not in ("class", "text") or not labels.census or dataset.sources:
        return
    if not dataset.train.labels_complete or (loss is not None and not classifies(loss)):
        return
    if labels.distinct_before_cut is not None:
        return  # a cast has taken them: destroyed-labels
    if is_sorted_split(dataset) or (dataset.repetition is not None and dataset.repetition.ignores_index):
        return  # that is why they are missing
    held = dataset.evaluation.labels if dataset.evaluation else None
    if held is not None and lacks_labels(held) and -1 not in labels.census:
        yield from () if loss is not None and refuses_unlabelled(loss) else (without_labels(dataset, setup),)
    elif held is not None and held.kind == labels.kind:
        yield from _unseen(labels, held, setup)
        yield from _single(labels, held, dataset, setup)
    yield from _declared(labels, held, loss, setup)


def _unseen(labels: LabelFacts, held: LabelFacts, setup: SetupFacts) -> Iterator[Finding]:
    rows, total = sum(labels.census.values()), sum(held.census.values())
    absent = {v: n for v, n in held.census.items() if v not in labels.census}
    unseen = {v: n for v, n in absent.items() if n / total * rows >= FEWEST_EXPECTED}
    if sum(absent.values()) >= COSTLY * total and total >= FEWEST_EVALUATED and held.classes <= MOST_OUTPUTS:
        unseen = absent
    if not unseen:
        return
    count = sum(unseen.values())
    shown = _class_names(list(unseen), labels)
    yield Finding(
        message=f"the evaluation set contains {shown} in {count} of {total} rows; none of the {rows} training rows does",
        measured={
            "classes": ", ".join(map(str, unseen)),
            "evaluation_rows": count,
            "training_rows": 0,
            "expected_training_rows": round(count / total * rows),
        },
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER),
        proof=Proof(
            f"with the frequencies of the evaluation set, {rows} rows would contain about {round(count / total * rows)} of them; "
            f"the evaluation cannot reach more than {1 - count / total:.0%}"
        ),
        fix=Fix(
            does=f"look at how the training rows were chosen: they contain only {_class_names(sorted(labels.census, key=str), labels)}"
        ),
    )


def _single(labels: LabelFacts, held: LabelFacts, dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Evaluation rows of one class, of which chance would not draw so many; a set may be meant to have one."""
    rows, total = sum(labels.census.values()), sum(held.census.values())
    if held.classes != 1 or labels.classes < 2:
        return
    (value,) = held.census
    alike = labels.census.get(value, 0)
    if not alike or (alike / rows) ** total > BY_CHANCE:
        return
    yield Finding(
        severity=Severity.NOTE,
        message=f"all {total} evaluation rows have the {_class_names([value], labels)}, which {alike} of "
        f"{rows} training rows have: always predicting it is right",
        measured={"evaluation_rows": total, "evaluation_classes": 1, "training_classes": labels.classes},
        where=setup.place(Role.EVAL_DATASET_MADE, Role.EVAL_DATASET) or dataset.evaluation_place,
        fix=Fix(
            does="look at how the evaluation rows were chosen: a filter, or a range of rows that are sorted by class"
        ),
    )


def _declared(
    labels: LabelFacts, held: LabelFacts | None, loss: LossFacts | None, setup: SetupFacts
) -> Iterator[Finding]:
    """Classes declared by the data set's class names, or by the head's width if only one class occurs."""
    rows = sum(labels.census.values())
    declared = len(labels.class_names)
    if not declared and labels.classes > 1 and loss is not None:
        yield from _reserved(labels, held, loss, setup)
    single = labels.classes == 1 and loss is not None and (loss.classes or 0) > 1
    if declared and not single and (loss is None or loss.classes != declared):
        return
    total = declared or (loss.classes or 0 if single and loss is not None else 0)
    enough = rows >= (FEWEST_ROWS_ALONE if single else FEWEST_ROWS_A_CLASS * total)
    if labels.kind != "class" or total < 2 or not enough:
        return
    absent = [v for v in range(total) if v not in labels.census and not (held and v in held.census)]
    if not absent or len(absent) == total:
        return
    by = "the data set declares" if declared else "the model has outputs for"
    yield Finding(
        message=f"{by} {total} classes; {_class_names(absent, labels)} never {'occurs' if len(absent) == 1 else 'occur'} in the {rows} training rows",
        measured={"declared": total, "absent": ", ".join(map(str, absent)), "rows": rows},
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER),
        proof=Proof(f"all {rows} rows together have {labels.classes} of {total} values"),
        fix=Fix(
            does="look at how the training rows were chosen: a filter, or a range of rows that are sorted by class"
        ),
    )


def _reserved(labels: LabelFacts, held: LabelFacts | None, loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Outputs of the model for classes that no row has, beside classes with many rows each."""
    total = loss.classes or 0
    absent = [v for v in range(total) if v not in labels.census and not (held and v in held.census)]
    if loss.function not in CLASS_LOSSES or not 2 < total <= MOST_OUTPUTS or not 0 < len(absent) <= labels.classes // 4:
        return
    if not all(v in range(total) for v in labels.census) or min(labels.census.values()) < FEWEST_ROWS_A_CLASS:
        return
    rows = sum(labels.census.values())
    yield Finding(
        severity=Severity.NOTE,
        message=f"the model has outputs for {total} classes; {_class_names(absent, labels)} never "
        f"{'occurs' if len(absent) == 1 else 'occur'} in the {rows} training rows",
        measured={"outputs": total, "absent": ", ".join(map(str, absent)), "rows": rows},
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER),
        fix=Fix(does="look at how the rows were chosen; if the class is reserved, nothing is wrong"),
    )


def _class_names(values: Sequence[int | float | str], labels: LabelFacts) -> str:
    names = labels.class_names
    shown = [f"{v} ({names[v]})" if isinstance(v, int) and 0 <= v < len(names) else repr(v) for v in values[:5]]
    more = f" and {len(values) - 5} more" if len(values) > 5 else ""
    return f"{'class' if len(values) == 1 else 'classes'} {', '.join(shown)}{more}"
