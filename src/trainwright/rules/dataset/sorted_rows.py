"""Rows that are sorted by their class."""

from __future__ import annotations

import random
from collections.abc import Iterator

from trainwright.core import Call, Finding, Proof, Repair, Role, Seam, Severity, rule
from trainwright.rules.fixes import safe, unsafe
from trainwright.stages import CLASS_LOSSES, BatchOrder, DatasetFacts, LabelFacts, LossFacts, SetupFacts
from trainwright.stages.loss import BINARY_LOSSES

# With runs of this many batches, hardly any batch has a second class; chance lengthens runs by at most a few rows.
RUN_BATCHES = 1.0
RUN_FACTOR = 3.0
# Shuffled batches of 16 rows from two balanced classes have 60 % of one class; larger batches or more classes, less.
ONE_CLASS = 0.9
OF_SEVERAL = 0.6


@rule("TW111", Severity.WARNING)
def sorted_without_shuffle(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Rows read in order, with runs of equal labels as long as whole batches."""
    yield from _in_batches(dataset.batch_order, setup)
    labels = dataset.train.labels
    if dataset.shuffles is not False or labels is None or labels.kind != "class" or labels.classes < 2:
        return
    run, expected, rows = labels.mean_run, labels.expected_run, max(1, dataset.batch_size)
    if run < max(RUN_BATCHES * rows, RUN_FACTOR * expected) and not _hardly_mixed(dataset):
        return
    iterable = dataset.train.kind == "iterable"
    overridden = next(
        (o.where for o in setup.overrides if o.name in ("get_train_dataloader", "_get_train_sampler")), None
    )
    majority = dataset.batch_majority
    of_batches = {"batch_majority": round(majority, 3)} if majority is not None else {}
    seen = f"nearly every batch contains one class{f' ({majority:.0%} of its rows)' if majority is not None else ''}"
    yield Finding(
        message=f"the labels come in runs of {run:.0f} rows (shuffled: {expected:.1f}) and training reads them in this "
        f"order, in batches of {rows}: {seen}",
        measured={"mean_run": round(run, 1), "shuffled_run": round(expected, 2), "batch_size": rows, **of_batches},
        where=overridden or setup.place(Role.TRAIN_SAMPLING_STRATEGY, Role.TRAIN_DATASET, Role.TRAINER),
        proof=Proof(
            f"over {labels.rows_read:,} rows in training order, the label changes {labels.rows_read / run:.0f} times"
        ),
        repair=Repair(
            "shuffle the training rows",
            Seam.TRAINER,
            lambda call: call.replace(train_dataset=call.tensors.shuffled(call.part("train_dataset"))),
        ),
        fix=safe(
            "shuffle the rows before streaming them, with a buffer longer than a run of one class"
            if iterable
            else "let the loader shuffle, or pass a shuffled training set"
        ),
    )


def _in_batches(order: BatchOrder | None, setup: SetupFacts) -> Iterator[Finding]:
    """The batches of a loop that cuts them itself."""
    if order is None or order.majority < ONE_CLASS or order.most_frequent > OF_SEVERAL:
        return
    yield Finding(
        message=f"the batches come sorted by label: in {order.batches} of them in a row the most frequent label is that of "
        f"{order.majority:.0%} of a batch's rows, and together they have {order.classes} labels",
        measured={"batch_majority": round(order.majority, 3), "batches": order.batches, "classes": order.classes},
        where=setup.place(Role.TRAIN_DATASET, Role.TRAINER),
        proof=Proof(f"the labels of {order.batches} consecutive batches of {order.rows:.0f} rows"),
        fix=safe("draw the rows in a random order, a new one in each epoch"),
    )


def _hardly_mixed(dataset: DatasetFacts) -> bool:
    """Whether batches contain one class although runs are short: the shuffle buffer is far smaller than a class."""
    labels, majority = dataset.train.labels, dataset.batch_majority
    if labels is None or majority is None:
        return False
    return majority >= ONE_CLASS and labels.majority_share <= OF_SEVERAL


# Total variation distance between the sets' class distributions: two halves of a sorted set of two classes have 1, two
# random halves of 100 rows stay under 0.2.
DIFFERENT = 0.5
# Where one set begins with the class that the other ends with and they share no other, chance would do for less.
DIFFERENT_IN_ORDER = 0.25
# How many times longer the runs of equal labels are than in shuffled rows; a shuffled set has 1.
SORTED = 4.0
FEWEST_ROWS = 16
_CLASSIFYING = (*CLASS_LOSSES, *BINARY_LOSSES)


@rule("TW112", Severity.ERROR, raises=False)
def split_of_sorted_data(dataset: DatasetFacts, setup: SetupFacts, loss: LossFacts | None) -> Iterator[Finding]:
    """Two parts of class-sorted rows with different classes."""
    held = dataset.evaluation.labels if dataset.evaluation else None
    labels = dataset.train.labels
    if not is_sorted_split(dataset) or labels is None or held is None:
        return
    if loss is not None and not classifies(loss):
        return  # learning to compare: evaluation on classes never seen is the usual way there
    moved = _distance(labels, held)
    yield Finding(
        message=f"training has the classes {_class_shares(labels)}, evaluation {_class_shares(held)}, in runs of "
        f"{labels.mean_run:.0f} and {held.mean_run:.0f} equal labels: sorted rows were split in two",
        measured={
            "distance": round(moved, 3),
            "train_run": round(labels.mean_run, 1),
            "evaluation_run": round(held.mean_run, 1),
        },
        where=setup.place(Role.EVAL_DATASET_MADE, Role.EVAL_DATASET)
        or dataset.evaluation_place
        or setup.place(Role.TRAIN_DATASET, Role.TRAINER),
        proof=Proof(
            f"{moved:.0%} of the rows would have to change their class for the two sets to have the same distribution"
        ),
        repair=Repair("mix both sets and split them again, with the same sizes", Seam.TRAINER, _split_anew)
        if dataset.evaluation_place is None
        else None,
        fix=unsafe(f"shuffle before the split: {setup.words.stratified_split}"),
    )


def classifies(loss: LossFacts) -> bool:
    """Whether the loss compares class scores with labels; True if the loss cannot be seen."""
    if loss.call is None:
        return not loss.function
    return loss.function in _CLASSIFYING and loss.targets_are_labels


def is_sorted_split(dataset: DatasetFacts) -> bool:
    """Whether both sets are sorted by class and contain largely different classes."""
    labels, held = dataset.train.labels, dataset.evaluation.labels if dataset.evaluation else None
    if labels is None or held is None or labels.kind != "class" or held.kind != "class":
        return False
    if not dataset.train.labels_complete or min(labels.counted, held.counted) < FEWEST_ROWS:
        return False
    least = DIFFERENT_IN_ORDER if _continues(labels, held) else DIFFERENT
    return _sorted(labels) and _sorted(held) and _distance(labels, held) >= least


def _continues(labels: LabelFacts, held: LabelFacts) -> bool:
    """Whether the evaluation rows go on where the training rows end: with their last class, and no other one of theirs."""
    shared = labels.census.keys() & held.census.keys()
    if len(shared) != 1 or not labels.first_rows or not held.first_rows or labels.classes < 2:
        return False
    (value,) = shared
    rows = labels.first_rows, held.first_rows
    return rows[0].get(value) == max(rows[0].values()) and rows[1].get(value) == min(rows[1].values())


def _sorted(labels: LabelFacts) -> bool:
    if labels.classes == 1:
        return True
    return labels.mean_run >= SORTED * max(1.0, labels.expected_run)


def _distance(left: LabelFacts, right: LabelFacts) -> float:
    """The total variation distance between two class distributions, 0 to 1."""
    totals = sum(left.census.values()), sum(right.census.values())
    values = {*left.census, *right.census}
    return sum(abs(left.census.get(v, 0) / totals[0] - right.census.get(v, 0) / totals[1]) for v in values) / 2


def _class_shares(labels: LabelFacts) -> str:
    total = sum(labels.census.values())
    shown = [f"{v} ({n / total:.0%})" for v, n in list(labels.census.items())[:4]]
    return ", ".join(shown) + (", …" if labels.classes > 4 else "")


def _split_anew(call: Call) -> Call:
    train, held = call.part("train_dataset"), call.part("eval_dataset")
    held = next(iter(held.values())) if type(held) is dict else held
    rows = [(0, i) for i in range(len(train))] + [(1, i) for i in range(len(held))]
    random.Random(0).shuffle(rows)
    cut = len(train)
    return call.replace(
        train_dataset=call.tensors.choose_of_several([train, held], rows[:cut]),
        eval_dataset=call.tensors.choose_of_several([train, held], rows[cut:]),
    )
