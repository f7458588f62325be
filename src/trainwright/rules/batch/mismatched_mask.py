"""TW213 mismatched-mask: attention_mask and input_ids disagree in length or content.

Why it matters: The model attends to padding as if it were text, or stops because the shapes do not match.
Evidence: The shapes of the two tensors; the padding tokens at the ends of rows that the mask includes, and the text
that it excludes; and that the scores change when only those padding tokens change.
Error: `The size of tensor a … must match the size of tensor b`
Error: `The expanded size of the tensor`
Fix (safe): Take attention_mask and input_ids from the same call of the tokenizer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainwright.core import Finding, Fix, Place, Proof, Repair, Role, Safety, Severity, Tensors, rule
from trainwright.rules.repairs import change_batches
from trainwright.stages import BatchFacts, ForwardFacts, SetupFacts, real_positions

# Below a twentieth of the positions, a few stray tokens are not a pattern.
ATTENDED_SHARE = 0.05
# A thousandth of the scores' scale is far above rounding (1e-6 in float32).
CHANGED_SCORES = 1e-3
# If texts contain the padding token themselves, some positions are ambiguous.
INVERTED_SHARE = 0.9
_FIX = Fix(does="take attention_mask from the tokenizer call that makes input_ids", safety=Safety.SAFE)


@rule("TW213", Severity.ERROR)
def mismatched_mask(batch: BatchFacts, setup: SetupFacts, forward: ForwardFacts | None) -> Iterator[Finding]:
    """A mask whose length differs from the ids' and makes the model fail, or a mask that includes padding."""
    ids, mask = batch.tensors.get("input_ids"), batch.tensors.get("attention_mask")
    if ids is None or mask is None or len(ids.shape) != 2 or len(mask.shape) != 2:
        return
    if ids.shape != mask.shape:
        # A longer mask is correct if the model adds a prefix to the ids: then nothing fails.
        if forward is not None and forward.failure is not None:
            yield Finding(
                message=f"attention_mask has shape {mask.shape}, but input_ids has shape {ids.shape}",
                measured={"attention_mask": str(mask.shape), "input_ids": str(ids.shape)},
                where=_place(setup, batch),
                proof=Proof(f"the shapes differ, and the model raised {forward.failure}"),
                repair=_mask_anew(batch.pad_id),
                fix=_FIX,
            )
        return
    changes = forward.padding_let_in_changes if forward is not None else None
    if changes is not None and changes < CHANGED_SCORES:
        return  # a model that means it so (1 where padding is), or that never looks there (causal, padded behind)
    if _inverted(batch, ids.shape[0] * ids.shape[1]):
        yield _inverted_mask(batch, setup, changes)
    elif batch.attended_padding >= ATTENDED_SHARE * ids.shape[0] * ids.shape[1]:
        yield _mask_over_padding(batch, setup, changes, ids.shape[0] * ids.shape[1])


def _inverted(batch: BatchFacts, positions: int) -> bool:
    """Whether the mask is 1 on padding and 0 on text."""
    padding, text = batch.padding_tokens, positions - batch.padding_tokens
    return batch.attended_padding >= INVERTED_SHARE * padding > 0 and batch.hidden_tokens >= INVERTED_SHARE * text


def _inverted_mask(batch: BatchFacts, setup: SetupFacts, changes: float | None) -> Finding:
    text = batch.tensors["input_ids"].shape[0] * batch.tensors["input_ids"].shape[1] - batch.padding_tokens
    return Finding(
        message=f"attention_mask is inverted: it excludes {batch.hidden_tokens} of {text} text positions and includes "
        f"{batch.attended_padding} of {batch.padding_tokens} padding positions",
        measured={
            "hidden_tokens": batch.hidden_tokens,
            "text_positions": text,
            "attended_padding": batch.attended_padding,
            "padding_positions": batch.padding_tokens,
        },
        where=_place(setup, batch),
        proof=Proof(f"id {batch.pad_id} is the tokenizer's padding token, and the mask is 1 there{_seen(changes)}"),
        repair=_mask_anew(batch.pad_id),
        fix=Fix(does="write 1 for text and 0 for padding in attention_mask", safety=Safety.SAFE),
    )


def _mask_over_padding(batch: BatchFacts, setup: SetupFacts, changes: float | None, positions: int) -> Finding:
    return Finding(
        message=f"attention_mask includes {batch.attended_padding} of {positions} positions with the padding "
        f"token ({batch.pad_id}) at the ends of rows",
        measured={"attended_padding": batch.attended_padding, "positions": positions, "pad_id": batch.pad_id or 0},
        where=_place(setup, batch),
        proof=Proof(f"id {batch.pad_id} is the tokenizer's padding token, and the mask is 1 there{_seen(changes)}"),
        severity=Severity.WARNING,
        repair=_mask_anew(batch.pad_id),
        fix=_FIX,
    )


def _seen(changes: float | None) -> str:
    return f"; changing only the tokens there changes the scores by {changes:.1%} of their scale" if changes else ""


def _place(setup: SetupFacts, batch: BatchFacts) -> Place | None:
    """The line that made the mask: the collator's if it made or changed the mask."""
    if batch.collator_masks and (place := setup.place(Role.COLLATOR)) is not None:
        return place
    return setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.COLLATOR, Role.TRAINER, Role.TRAIN_CALL)


def _mask_anew(pad_id: int | None) -> Repair:
    def change(batch: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
        real = real_positions(tensors.to_numpy(batch["input_ids"]), None, pad_id=pad_id)
        return {**batch, "attention_mask": tensors.like(real, batch["input_ids"])}

    return change_batches("build the attention mask from the padding at the ends of rows", change)
