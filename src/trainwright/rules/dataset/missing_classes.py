"""TW110 missing-classes: training never sees a class that the evaluation set contains or the data set declares.

Why it matters: The model cannot predict a class it was never shown; its score on that class stays 0.
Evidence: The counts of the labels in both sets, over all training rows. A rare class that may be missing by chance is
not reported: by its frequency, several of its rows should be in the training set, or the classes that are missing make up
a fifth of the evaluation rows. An output of the model for a class that neither set contains is a note, it may be reserved;
so are evaluation rows of one class. Evaluation rows whose labels are all -1 have none; where the loss
cannot take them, label-out-of-range says so.
Fix (manual): Look at how the rows were chosen: a filter, a range of sorted rows, or two files of different origin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainwright.core import Finding, Fix, Proof, Role, Severity, rule
from trainwright.rules.class_labels import lacks_labels, refuses_unlabelled, without_labels
from trainwright.rules.dataset.split_of_sorted_data import classifies, is_sorted_split
from trainwright.stages import CLASS_LOSSES, DatasetFacts, LabelFacts, LossFacts, SetupFacts

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
    shown = _names(list(unseen), labels)
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
            does=f"look at how the training rows were chosen: they contain only {_names(sorted(labels.census, key=str), labels)}"
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
        message=f"all {total} evaluation rows have the {_names([value], labels)}, which {alike} of "
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
        message=f"{by} {total} classes; {_names(absent, labels)} never {'occurs' if len(absent) == 1 else 'occur'} in the {rows} training rows",
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
        message=f"the model has outputs for {total} classes; {_names(absent, labels)} never "
        f"{'occurs' if len(absent) == 1 else 'occur'} in the {rows} training rows",
        measured={"outputs": total, "absent": ", ".join(map(str, absent)), "rows": rows},
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER),
        fix=Fix(does="look at how the rows were chosen; if the class is reserved, nothing is wrong"),
    )


def _names(values: Sequence[int | float | str], labels: LabelFacts) -> str:
    names = labels.class_names
    shown = [f"{v} ({names[v]})" if isinstance(v, int) and 0 <= v < len(names) else repr(v) for v in values[:5]]
    more = f" and {len(values) - 5} more" if len(values) > 5 else ""
    return f"{'class' if len(values) == 1 else 'classes'} {', '.join(shown)}{more}"
