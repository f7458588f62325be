"""TW112 split-of-sorted-data: rows sorted by class were split in two without shuffling.

Why it matters: The evaluation set contains other classes than the training set, so its score means nothing, and some
classes are never learned.
Evidence: The lengths of runs of equal labels in both sets, which show the sorting, and how little their classes
overlap; or that one set goes on with the class that the other ends with, and they share no other.
Fix (unsafe): Shuffle before the split, or use a stratified split.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.stages import DatasetFacts, LabelFacts, LossFacts, SetupFacts

# Total variation distance between the sets' class distributions: two halves of a sorted set of two classes have 1, two
# random halves of 100 rows stay under 0.2.
DIFFERENT = 0.5
# Where one set begins with the class that the other ends with and they share no other, chance would do for less.
DIFFERENT_IN_ORDER = 0.25
# How many times longer the runs of equal labels are than in shuffled rows; a shuffled set has 1.
SORTED = 4.0
FEWEST_ROWS = 16
_CLASSIFYING = ("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits")


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
        message=f"training has the classes {_shares(labels)}, evaluation {_shares(held)}, in runs of "
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
        fix=Fix(does=f"shuffle before the split: {setup.words.stratified_split}", safety=Safety.UNSAFE),
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


def _shares(labels: LabelFacts) -> str:
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
