"""TW127 equal-inputs: all training rows have the same inputs.

Why it matters: The inputs tell nothing about the labels, so the best that the model can learn is one answer for all rows.
It is usually a join, a lookup or a copy that failed and left zeros, ones or the first row everywhere.
Evidence: All rows that were read are compared, and the inputs of the first batches as the model receives them; their labels
differ. If only the model's inputs are equal and the rows of the data set are not, the step overwrites them.
Fix (manual): Look at the line that makes the inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from trainwright.core import Finding, Fix, Place, Proof, Role, Severity, rule
from trainwright.stages import BatchFacts, DatasetFacts, SetupFacts, SplitFacts

# Eight rows that are drawn are not the same one by chance, unless most rows of the data set are.
FEWEST_ROWS = 8


@rule("TW127", Severity.ERROR, raises=False)
def equal_inputs(dataset: DatasetFacts, batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Rows whose inputs are all the same, although their labels are not."""
    seen, train = batch.equal_inputs, dataset.train
    if seen is None or seen.rows < FEWEST_ROWS or seen.labels < 2 or not train.hashed:
        return
    of_set = len(train.hashes) == 1
    if not of_set and _most_frequent(train) >= seen.rows:
        return  # the first batches may hold these rows alone
    what = "zeros" if seen.zero else "the same inputs"
    rows = train.hashed if of_set else seen.rows
    where = f"all {rows:,} training rows that were read" if of_set else f"the {rows:,} rows of the first batches"
    yield Finding(
        message=f"the inputs of {where} are {'zeros' if seen.zero else 'the same'}, and their labels differ"
        + ("" if of_set else f"; in the data set, {len(train.hashes):,} of {train.hashed:,} rows are different"),
        measured={"rows": rows, "different_inputs": 1, "different_labels": seen.labels},
        where=_made(setup) if of_set else setup.place(Role.MODEL, Role.TRAINER),
        proof=Proof(
            f"the model receives {what} in all {seen.rows:,} rows of the first batches, with {seen.labels:,} different labels"
        ),
        fix=Fix(
            does="look at the line that makes the inputs: a join or lookup that matches nothing, an array that is never filled, "
            "or an index that stays the same"
            if of_set
            else "look at what the step does with the inputs of a batch before it calls the model"
        ),
    )


def _made(setup: SetupFacts) -> Place | None:
    return setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.LOADER, Role.TRAINER, Role.TRAIN_CALL)


def _most_frequent(split: SplitFacts) -> int:
    """How many rows have the most frequent inputs."""
    return Counter(split.row_hashes).most_common(1)[0][1]
