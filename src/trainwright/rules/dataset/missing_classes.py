"""TW110 missing-classes: training never sees a class that the evaluation set contains or the data set declares.

Why it matters: The model cannot predict a class it was never shown; its score on that class stays 0.
Evidence: The counts of the labels in both sets, over all training rows. A rare class that may be missing by chance is
not reported: by its frequency, several of its rows should be in the training set.
Fix (manual): Look at how the rows were chosen: a filter, a range of sorted rows, or two files of different origin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainwright.core.finding import Finding, Proof, Severity
from trainwright.core.fix import Fix
from trainwright.core.role import Role
from trainwright.core.rule import rule
from trainwright.rules.dataset.split_of_sorted_data import classifies, is_sorted_split
from trainwright.stages.dataset import DatasetFacts, LabelFacts
from trainwright.stages.loss import LossFacts
from trainwright.stages.setup import SetupFacts

# If both sets have the same distribution, a class with 7 expected rows is absent once in e^7 = 1,100 times.
FEWEST_EXPECTED = 7.0
# For a declared class, only the mean number of rows per class is known; this many leave no doubt.
FEWEST_ROWS_A_CLASS = 20


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
    if held is not None and held.kind == labels.kind:
        yield from _unseen(labels, held, dataset, setup)
    yield from _declared(labels, held, loss, setup)


def _unseen(labels: LabelFacts, held: LabelFacts, dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    rows, total = sum(labels.census.values()), sum(held.census.values())
    unseen = {v: n for v, n in held.census.items() if v not in labels.census and n / total * rows >= FEWEST_EXPECTED}
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
            f"with the frequencies of the evaluation set, {rows} rows would contain about {round(count / total * rows)} of them"
        ),
        fix=Fix(
            does=f"look at how the training rows were chosen: they contain only {_names(sorted(labels.census, key=str), labels)}"
        ),
    )


def _declared(
    labels: LabelFacts, held: LabelFacts | None, loss: LossFacts | None, setup: SetupFacts
) -> Iterator[Finding]:
    """Classes declared by the data set's class names, or by the head's width if only one class occurs."""
    rows = sum(labels.census.values())
    declared = len(labels.class_names)
    single = labels.classes == 1 and loss is not None and (loss.classes or 0) > 1
    if declared and not single and (loss is None or loss.classes != declared):
        return
    total = declared or (loss.classes or 0 if single and loss is not None else 0)
    if labels.kind != "class" or total < 2 or rows / total < FEWEST_ROWS_A_CLASS:
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


def _names(values: Sequence[int | float | str], labels: LabelFacts) -> str:
    names = labels.class_names
    shown = [f"{v} ({names[v]})" if isinstance(v, int) and 0 <= v < len(names) else repr(v) for v in values[:5]]
    more = f" and {len(values) - 5} more" if len(values) > 5 else ""
    return f"{'class' if len(values) == 1 else 'classes'} {', '.join(shown)}{more}"
