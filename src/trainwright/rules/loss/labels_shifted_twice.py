"""TW411 labels-shifted-twice: the script shifts the labels of a causal model by one, and the model shifts them again.

Why it matters: Nothing fails, and the loss falls. The model learns to predict the token after the next, and generates
every other token.
Evidence: The targets at the loss call are the input tokens shifted by two.
Fix (safe): Use the input ids themselves as labels.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.stages import BatchFacts, LossFacts, SetupFacts


@rule("TW411", Severity.ERROR)
def labels_shifted_twice(loss: LossFacts, batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Labels that reach the model as next tokens and the loss as the tokens after those."""
    mask = batch.mask
    if loss.token_offset != 2 or mask is None or not mask.shifted_by_one or batch.label_key is None:
        return
    in_items = batch.label_key in batch.item_columns
    made = Role.TRAIN_DATASET_MADE
    roles = (made, Role.TRAIN_DATASET) if in_items else (Role.COLLATOR, made)
    yield Finding(
        message="the labels are the input tokens shifted by one, and the model shifts them again: at each position, the "
        "target is the token 2 positions later instead of the next token",
        measured={"places": loss.token_offset, "live_positions": mask.live},
        where=setup.place(*roles, Role.TRAINER),
        proof=Proof("each target at the loss call equals the input token two positions later"),
        repair=_move_back(batch.label_key),
        fix=Fix(does="set labels to a copy of input_ids: the model shifts them itself", safety=Safety.SAFE),
    )


def _move_back(key: str) -> Repair:
    def change(call: Call) -> Call:
        labels = call.tensors.to_numpy(call[key]).copy()
        labels[:, 1:] = labels[:, :-1].copy()
        labels[:, 0] = -100
        return call.replace(**{key: call.tensors.like(labels, call[key])})

    return Repair("shift the labels back by one", Seam.BATCH, change)
