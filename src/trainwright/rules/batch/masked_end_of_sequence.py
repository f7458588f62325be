"""TW207 masked-end-of-sequence: every end-of-sequence label is -100, because the padding token is the same token.

Why it matters: The collator excludes padding from the loss. If the padding token is also the end-of-sequence token, the
real ends are excluded too, and the model never learns to stop.
Evidence: The end-of-sequence tokens inside the texts of the first batches, and how many of them count in the loss.
Fix (unsafe): Use a separate padding token, or write the labels of the real ends back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trainwright.core import Finding, Fix, Proof, Repair, Role, Safety, Severity, Tensors, rule
from trainwright.rules.repairs import change_batches
from trainwright.stages import BatchFacts, SetupFacts, real_positions


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
        fix=Fix(
            does="use a separate padding token: tokenizer.add_special_tokens({'pad_token': '<pad>'}), then "
            "model.resize_token_embeddings(len(tokenizer))",
            safety=Safety.UNSAFE,
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
