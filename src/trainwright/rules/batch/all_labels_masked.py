"""TW208 all-labels-masked: the loss ignores all labels of a batch.

Why it matters: The mean over no positions is NaN, which reaches every weight. If only some rows are fully masked, they
cost compute and teach nothing.
Evidence: How many labels in each row of the first batches are not -100. If rows have weights, how many of those are not
0.
Fix (manual): Raise the length limit so that answers are not cut off, or leave out such rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import BatchFacts, DatasetFacts, SetupFacts

# If half of the rows teach nothing, the cause is not a few long texts; a twentieth is worth a note.
WASTED_SHARE = 0.5
NOTED_SHARE = 0.05
FEWEST_ROWS = 16


@rule("TW208", Severity.ERROR)
def all_labels_masked(batch: BatchFacts, dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Batches, or many rows, in which all labels are -100."""
    if batch.weightless_rows:
        yield _without_weight(batch, setup)
        return
    counts = [c for c in batch.label_counts if c.positions]
    rows, dead = sum(c.rows for c in counts), sum(c.dead_rows for c in counts)
    empty = sum(not c.live for c in counts)
    if not dead:
        return
    # Accumulation divides by the labels of all its batches: one without labels then adds nothing.
    fatal = empty == len(counts) or (empty and setup.accumulation == 1)
    severity = Severity.ERROR if fatal else Severity.WARNING if dead / rows >= WASTED_SHARE else Severity.NOTE
    if not fatal and all(c.positions == c.rows for c in counts):
        return  # one label a row: rows without one are given to another term of the loss
    if not fatal and (rows < FEWEST_ROWS or dead / rows < NOTED_SHARE or _drawn_anew(batch, dataset)):
        return
    key = batch.label_key
    what = f"{empty} of {len(counts)} batches have no label" if fatal else f"{dead} of {rows} rows have no label"
    yield Finding(
        message=f"{what} that counts in the loss: their {key} are all -100",
        measured={"batches": len(counts), "empty_batches": empty, "rows": rows, "masked_rows": dead},
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.COLLATOR, Role.TRAINER),
        proof=Proof(f"{sum(c.live for c in counts)} of {sum(c.positions for c in counts)} labels count"),
        severity=severity,
        fix=Fix(
            does="raise the length limit so that the text to be learned is not cut off, or leave out rows without a label"
        ),
    )


def _without_weight(batch: BatchFacts, setup: SetupFacts) -> Finding:
    """Row or class weights that are all 0; rows that were not read may have other weights."""
    named, rows = setup.place(Role.SAMPLE_WEIGHT, Role.CLASS_WEIGHT), batch.weightless_rows
    of = f"all {rows:,} rows have" if batch.all_weightless else f"the first {rows:,} rows all have"
    return Finding(
        message=f"{of} the weight 0 in the loss, so nothing is learned from them",
        measured={"weight": 0, "rows": rows},
        where=named or setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAIN_CALL),
        proof=Proof("all weights passed to the loss are 0"),
        severity=Severity.ERROR if batch.all_weightless else Severity.WARNING,
        fix=Fix(
            does="look at how the weights are made: an inverted mask, an integer division, a class without a weight"
        ),
    )


def _drawn_anew(batch: BatchFacts, dataset: DatasetFacts) -> bool:
    """Whether the collator picks the live tokens at random (masked language modeling): short rows may have none."""
    own = dataset.train.labels is not None
    return not own and not any(m.equals_inputs or m.shifted_by_one for m in batch.masks)
