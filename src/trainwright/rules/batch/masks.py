"""Padding that is not masked."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Any

from trainwright.core import Diagnosis, Finding, Place, Proof, Repair, Role, Severity, Tensors, Trial, rule
from trainwright.rules.fixes import safe, set_keyword
from trainwright.rules.padding import ignore_padding_labels, mask_padding
from trainwright.rules.repairs import change_batches, on_model
from trainwright.stages import (
    IGNORED_LABEL,
    BatchFacts,
    DatasetFacts,
    ForwardFacts,
    LossFacts,
    SetupFacts,
    real_positions,
)

# A smaller share of the loss does no harm worth reporting.
COUNTED_SHARE = 0.05
# More than one padding label per row: one may be intended, as the end of the text.
LABELS_PER_ROW = 1.5
# A thousandth of the scores' scale is far above rounding (1e-6 in float32); an untrained model attends evenly, so
# padding moves its scores by only a few hundredths.
CHANGED_SCORES = 1e-3
CHANGED_LOSS = 1e-4
# A recurrent layer remembers text over a few steps of padding; the trial runs if padding is a third of the positions.
FORGOTTEN_SHARE = 0.33
# A single batch can be memorized even from the little that is left of the text.
FORGETTING_STEPS = 32
FORGETTING_BATCHES = 3
_RECURRENT = ("LSTM", "GRU", "SimpleRNN")
# transformers' classification heads for decoders (modeling_layers.py, 5.23).
_NO_PADDING_TOKEN = "if no padding token is defined"


@rule("TW209", Severity.ERROR)
def unmasked_padding(
    batch: BatchFacts, dataset: DatasetFacts, setup: SetupFacts, forward: ForwardFacts, loss: LossFacts | None
) -> Diagnosis:
    """Padding that the loss, the attention or a recurrent layer treats as text."""
    if forward.failure is not None:
        yield from _unknown_padding(batch, dataset, setup, forward)
        return
    yield from _read_to_the_end(batch, setup, forward)
    # A token that only the configuration calls padding may be an ordinary token.
    if not batch.has_attention_mask and (dataset.tokenizer is None or dataset.tokenizer.pad_id is None):
        return
    if loss is not None:
        yield from _in_the_loss(batch, setup, loss)
    yield from _in_attention(batch, setup, forward)


def _read_to_the_end(batch: BatchFacts, setup: SetupFacts, forward: ForwardFacts) -> Diagnosis:
    """Recurrent layers that read long padding after the text and forget the text."""
    recurrent = next((m for m in forward.modules if m.kind in _RECURRENT), None)
    if batch.unmasked_zeros < FORGOTTEN_SHARE or recurrent is None:
        return
    masked = _mask_zero(batch.embedding)
    outcome = yield Trial(change=masked, steps=FORGETTING_STEPS, batches=FORGETTING_BATCHES)
    if not outcome.clearly_better:
        return
    where = forward.place_of(batch.embedding) or setup.place(Role.MODEL, Role.TRAIN_CALL)
    edits = set_keyword(where, "mask_zero", "True", "Embedding")
    yield Finding(
        severity=Severity.WARNING,
        message=f"{batch.unmasked_zeros:.0%} of the positions are padding after the text, and {recurrent.name} "
        f"({recurrent.kind}) reads it: the embedding masks nothing",
        measured={"padding_share": round(batch.unmasked_zeros, 3)},
        where=where,
        proof=outcome,
        repair=masked,
        fix=safe("build the Embedding with mask_zero=True", edits),
    )


def _mask_zero(embedding: str) -> Repair:
    return on_model("mask token 0 in the embedding", lambda tensors, model: tensors.mask_padding(model, embedding))


def _unknown_padding(
    batch: BatchFacts, dataset: DatasetFacts, setup: SetupFacts, forward: ForwardFacts
) -> Iterator[Finding]:
    """A head that reads each row's last token, in a model whose config names no padding token."""
    failure, tokenizer = forward.failure, dataset.tokenizer
    if failure is None or _NO_PADDING_TOKEN not in failure.message:
        return
    # Rows that were never padded do not need a special padding token: any final token will do.
    pad = next((i for i in (batch.pad_id, batch.eos_id) if i is not None), None)
    name = (tokenizer.expression if tokenizer else "") or "tokenizer"
    value = f"{name}.pad_token_id" if batch.pad_id is not None or pad is None else f"{name}.eos_token_id"
    model = setup.place(Role.MODEL)
    edits = set_keyword(model if setup.loads_checkpoint else None, "pad_token_id", value, "from_pretrained")
    alone = ", and accepts one" if forward.works_at_rows == 1 else ""
    yield Finding(
        message=f"the model's config has no pad_token_id, so {setup.model_class} cannot tell where a row's text ends "
        f"and rejects a batch of {batch.rows} rows",
        measured={"rows": batch.rows, "pad_id": "none" if batch.pad_id is None else batch.pad_id},
        where=model or setup.place(Role.TRAINER, Role.TRAIN_CALL),
        proof=Proof(f"the model raised {failure} for {batch.rows} rows{alone}"),
        repair=_tell_padding(pad) if pad is not None else None,
        fix=safe(f"write model.config.pad_token_id = {value}", edits),
    )


def _in_the_loss(batch: BatchFacts, setup: SetupFacts, loss: LossFacts) -> Iterator[Finding]:
    live, counted = sum(m.live for m in batch.masks), sum(m.pad_live for m in batch.masks)
    rows, change = sum(m.rows for m in batch.masks), loss.padding_label_change
    if not live or counted / live < COUNTED_SHARE or counted < LABELS_PER_ROW * rows:
        return
    if change is None or change < CHANGED_LOSS or batch.label_key is None:
        return
    plain = loss.call is not None and loss.call.options.get("ignore_index", IGNORED_LABEL) == IGNORED_LABEL
    yield Finding(
        severity=Severity.WARNING,
        message=f"{counted / live:.0%} of the labels in the loss are padding ({counted} of {live} in "
        f"{len(batch.masks)} batches)",
        measured={"padding_labels": counted, "labels": live, "share": round(counted / live, 3)},
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.COLLATOR, Role.TRAINER, Role.TRAIN_CALL),
        proof=Proof(f"changing only the labels at padding changes the loss by {change:.1%}"),
        repair=ignore_padding_labels(batch.label_key, batch.pad_id, batch.eos_id) if plain else None,
        fix=safe("write -100 for the labels of padding: where attention_mask is 0"),
    )


def _in_attention(batch: BatchFacts, setup: SetupFacts, forward: ForwardFacts) -> Iterator[Finding]:
    change, share = forward.unmasked_padding_changes, fmean(batch.padding_shares or (0.0,))
    if batch.has_attention_mask or change is None or change < CHANGED_SCORES or share < COUNTED_SHARE:
        return
    own = (
        f"; the data set has one, which {setup.words.trainer} drops"
        if "attention_mask" in batch.dropped_columns
        else ""
    )
    yield Finding(
        severity=Severity.WARNING,
        message=f"{share:.0%} of the positions are padding, but the model gets no attention_mask{own}: it reads "
        f"padding as text",
        measured={"padding_share": round(share, 3), "score_change": round(change, 4)},
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.COLLATOR, Role.TRAINER, Role.TRAIN_CALL),
        proof=Proof(f"masking the padding changes the scores by {change:.1%} of their scale"),
        repair=mask_padding(batch.pad_id, batch.eos_id),
        fix=safe("keep the tokenizer's attention_mask among the columns of the data set"),
    )


def _tell_padding(token: int) -> Repair:
    return on_model(
        f"write pad_token_id={token} into the model's config", lambda tensors, model: tensors.set_padding(model, token)
    )


# Below a twentieth of the positions, a few stray tokens are not a pattern.
ATTENDED_SHARE = 0.05
# If texts contain the padding token themselves, some positions are ambiguous.
INVERTED_SHARE = 0.9
_FIX = safe("take attention_mask from the tokenizer call that makes input_ids")


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
                where=_mask_place(setup, batch),
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
        where=_mask_place(setup, batch),
        proof=Proof(
            f"id {batch.pad_id} is the tokenizer's padding token, and the mask is 1 there{_changes_scores(changes)}"
        ),
        repair=_mask_anew(batch.pad_id),
        fix=safe("write 1 for text and 0 for padding in attention_mask"),
    )


def _mask_over_padding(batch: BatchFacts, setup: SetupFacts, changes: float | None, positions: int) -> Finding:
    return Finding(
        message=f"attention_mask includes {batch.attended_padding} of {positions} positions with the padding "
        f"token ({batch.pad_id}) at the ends of rows",
        measured={"attended_padding": batch.attended_padding, "positions": positions, "pad_id": batch.pad_id or 0},
        where=_mask_place(setup, batch),
        proof=Proof(
            f"id {batch.pad_id} is the tokenizer's padding token, and the mask is 1 there{_changes_scores(changes)}"
        ),
        severity=Severity.WARNING,
        repair=_mask_anew(batch.pad_id),
        fix=_FIX,
    )


def _changes_scores(changes: float | None) -> str:
    return f"; changing only the tokens there changes the scores by {changes:.1%} of their scale" if changes else ""


def _mask_place(setup: SetupFacts, batch: BatchFacts) -> Place | None:
    """The line that made the mask: the collator's if it made or changed the mask."""
    if batch.collator_masks and (place := setup.place(Role.COLLATOR)) is not None:
        return place
    return setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.COLLATOR, Role.TRAINER, Role.TRAIN_CALL)


def _mask_anew(pad_id: int | None) -> Repair:
    def change(batch: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
        real = real_positions(tensors.to_numpy(batch["input_ids"]), None, pad_id=pad_id)
        return {**batch, "attention_mask": tensors.like(real, batch["input_ids"])}

    return change_batches("build the attention mask from the padding at the ends of rows", change)
