"""TW111 sorted-without-shuffle: the rows are sorted by label, and training reads them in that order.

Why it matters: Each batch contains one class. While the model learns it, it forgets the others, and the loss looks
excellent.
Evidence: The mean length of runs of equal labels in the order in which training reads the rows, compared with shuffled
rows.
Fix (safe): Shuffle the rows, or let the loader do it.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.stages import BatchOrder, DatasetFacts, SetupFacts

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
        repair=Repair("shuffle the training rows", Seam.TRAINER, _shuffle),
        fix=Fix(
            does="shuffle the rows before streaming them, with a buffer longer than a run of one class"
            if iterable
            else "let the loader shuffle, or pass a shuffled training set",
            safety=Safety.SAFE,
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
        fix=Fix(does="draw the rows in a random order, a new one in each epoch", safety=Safety.SAFE),
    )


def _hardly_mixed(dataset: DatasetFacts) -> bool:
    """Whether batches contain one class although runs are short: the shuffle buffer is far smaller than a class."""
    labels, majority = dataset.train.labels, dataset.batch_majority
    if labels is None or majority is None:
        return False
    return majority >= ONE_CLASS and labels.majority_share <= OF_SEVERAL


def _shuffle(call: Call) -> Call:
    return call.replace(train_dataset=call.tensors.shuffled(call.part("train_dataset")))
