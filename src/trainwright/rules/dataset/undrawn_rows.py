"""TW126 undrawn-rows: the sampler draws the same few rows over and over, and all others never.

Why it matters: WeightedRandomSampler takes a weight for each row. Given one for each class, it draws the first rows of the
data set over and over, and no error is raised. A list of rows that repeats a few of them, or weights that are zero for
nearly all rows, do the same.
Evidence: The number of its weights, and the number of rows; or that an epoch draws less than a tenth of the rows, each of
them several times, and that no other loader reads the data set. A list of few rows without repetitions is a choice.
Fix (unsafe): Give it a weight for each row: class_weights[labels]; or the numbers of all rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.stages import DatasetFacts, SamplerFacts, SetupFacts

# Drawing as many rows as there are with replacement leaves 37 % out and draws each other row 1.6 times: far from both.
SHARE, TIMES = 0.1, 4


@rule("TW126", Severity.ERROR, raises=False)
def undrawn_rows(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A sampler with fewer weights than rows, or one that repeats a few rows."""
    sampler, rows = dataset.sampler, dataset.train.rows
    if sampler is None or rows is None:
        return
    if not 0 < sampler.weights < rows:
        yield from _drawn_again(sampler, rows, setup)
        return
    labels = dataset.train.labels
    per_class = labels is not None and labels.kind == "class" and sampler.weights == labels.classes
    yield Finding(
        message=f"the sampler has {sampler.weights:,} weights for {rows:,} rows"
        + (", one for each class" if per_class else "")
        + f": it draws rows 0 to {sampler.weights - 1:,} only, and the other {rows - sampler.weights:,} never",
        measured={"weights": sampler.weights, "rows": rows},
        where=setup.place(Role.SAMPLER, Role.LOADER, Role.TRAIN_DATASET, Role.TRAINER),
        proof=Proof("a weighted sampler draws numbers of weights, and these are the rows that the loader takes"),
        fix=Fix(
            does="give the sampler a weight for each row: class_weights[labels]"
            if per_class
            else "give it a weight for each row",
            safety=Safety.UNSAFE,
        ),
    )


def _drawn_again(sampler: SamplerFacts, rows: int, setup: SetupFacts) -> Iterator[Finding]:
    """A few rows that come several times in an epoch, while nearly all others never do."""
    drawn = sampler.drawable
    if not 0 < drawn <= SHARE * rows or sampler.draws < TIMES * drawn:
        return
    yield Finding(
        message=f"the sampler draws {sampler.draws:,} rows an epoch from only {drawn:,} different ones; the other "
        f"{rows - drawn:,} of {rows:,} rows are never drawn",
        measured={"draws": sampler.draws, "different": drawn, "rows": rows},
        where=setup.place(Role.SAMPLER, Role.LOADER, Role.TRAIN_DATASET, Role.TRAINER),
        severity=Severity.WARNING,
        proof=Proof(
            f"all {sampler.weights:,} weights were read: {drawn:,} are above zero"
            if sampler.weights
            else f"the sampler's list of {sampler.draws:,} rows was read: it has {drawn:,} different numbers"
        ),
        fix=Fix(
            does="give every row a weight above zero"
            if sampler.weights
            else "give the sampler the numbers of all rows",
            safety=Safety.UNSAFE,
        ),
    )
