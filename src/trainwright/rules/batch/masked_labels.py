"""Labels that the loss leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trainwright.core import Finding, Fix, Proof, Repair, Role, Severity, Tensors, rule
from trainwright.rules.fixes import unsafe
from trainwright.rules.repairs import change_batches
from trainwright.stages import BatchFacts, DatasetFacts, SetupFacts, real_positions

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


@rule("TW207", Severity.WARNING)
def masked_end_of_sequence(batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Labels that equal the inputs except at every end-of-sequence token."""
    masks = [m for m in batch.masks if m.live]
    ends, counted = sum(m.eos_inputs for m in masks), sum(m.eos_live for m in masks)
    if batch.pad_id is None or batch.pad_id != batch.eos_id or not ends or counted or batch.label_key is None:
        return
    if not all(m.equals_inputs for m in masks):
        return
    yield Finding(
        message=f"none of the {ends} end-of-sequence tokens in {len(masks)} batches counts in the loss: "
        f"padding is the same token ({batch.eos_id}), and {batch.collator} masks it",
        measured={"ends": ends, "ends_that_count": 0, "pad_id": batch.pad_id, "eos_id": batch.eos_id},
        where=setup.place(Role.COLLATOR, Role.TRAINER, Role.TRAIN_CALL),
        proof=Proof(f"the labels equal the inputs wherever they count, and are -100 at all {ends} ends"),
        repair=_unmask(batch.label_key, batch.eos_id),
        fix=unsafe(
            "use a separate padding token: tokenizer.add_special_tokens({'pad_token': '<pad>'}), then "
            "model.resize_token_embeddings(len(tokenizer))"
        ),
    )


def _unmask(key: str, eos_id: int) -> Repair:
    def change(batch: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
        tokens, labels = (tensors.to_numpy(batch[k]) for k in ("input_ids", key))
        mask = tensors.to_numpy(batch["attention_mask"]) if "attention_mask" in batch else None
        real = real_positions(tokens, mask, pad_id=eos_id, eos_id=eos_id)
        labels = np.where((tokens == eos_id) & real, tokens, labels)
        return {**batch, key: tensors.like(labels, batch[key])}

    return change_batches("count the labels of the real ends", change)
