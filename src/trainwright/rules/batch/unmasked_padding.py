"""TW209 unmasked-padding: padding contributes to the loss or the attention, or the model has no padding token.

Why it matters: The model spends its loss on predicting padding, which hides how well it learns the text; or its outputs
depend on how much a row happens to be padded.
Evidence: The labels at padding positions, and that the loss changes with these labels alone; or that the scores at real
positions change when a mask excludes the padding; or that the model accepts only one row at a time; or that, on three
seeds, a batch is learned clearly better once recurrent layers ignore the zeros after the text (mask_zero in Keras).
Error: `Cannot handle batch sizes > 1 if no padding token is defined.`
Fix (safe): Use -100 as the label of padding, pass the tokenizer's attention_mask to the model, and set its pad_token_id
in the model's config.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from trainwright.core import (
    Call,
    Diagnosis,
    Finding,
    Fix,
    Proof,
    Repair,
    Role,
    Safety,
    Seam,
    SetKeyword,
    Severity,
    Trial,
    rule,
)
from trainwright.rules.padding import ignore_padding_labels, mask_padding
from trainwright.stages import BatchFacts, DatasetFacts, ForwardFacts, LossFacts, SetupFacts

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
    edits = (
        [SetKeyword(file=where.file, line=where.line, name="mask_zero", value="True", function="Embedding")]
        if where
        else []
    )
    yield Finding(
        severity=Severity.WARNING,
        message=f"{batch.unmasked_zeros:.0%} of the positions are padding after the text, and {recurrent.name} "
        f"({recurrent.kind}) reads it: the embedding masks nothing",
        measured={"padding_share": round(batch.unmasked_zeros, 3)},
        where=where,
        proof=outcome,
        repair=masked,
        fix=Fix(does="build the Embedding with mask_zero=True", safety=Safety.SAFE, edits=tuple(edits)),
    )


def _mask_zero(embedding: str) -> Repair:
    def change(call: Call) -> Call:
        call.tensors.mask_padding(call["model"], embedding)
        return call

    return Repair("mask token 0 in the embedding", Seam.TRAINER, change)


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
    edit = (
        [SetKeyword(file=model.file, line=model.line, name="pad_token_id", value=value, function="from_pretrained")]
        if model and setup.loads_checkpoint
        else []
    )
    alone = ", and accepts one" if forward.works_at_rows == 1 else ""
    yield Finding(
        message=f"the model's config has no pad_token_id, so {setup.model_class} cannot tell where a row's text ends "
        f"and rejects a batch of {batch.rows} rows",
        measured={"rows": batch.rows, "pad_id": "none" if batch.pad_id is None else batch.pad_id},
        where=model or setup.place(Role.TRAINER, Role.TRAIN_CALL),
        proof=Proof(f"the model raised {failure} for {batch.rows} rows{alone}"),
        repair=_tell_padding(pad) if pad is not None else None,
        fix=Fix(does=f"write model.config.pad_token_id = {value}", safety=Safety.SAFE, edits=tuple(edit)),
    )


def _in_the_loss(batch: BatchFacts, setup: SetupFacts, loss: LossFacts) -> Iterator[Finding]:
    live, counted = sum(m.live for m in batch.masks), sum(m.pad_live for m in batch.masks)
    rows, change = sum(m.rows for m in batch.masks), loss.padding_label_change
    if not live or counted / live < COUNTED_SHARE or counted < LABELS_PER_ROW * rows:
        return
    if change is None or change < CHANGED_LOSS or batch.label_key is None:
        return
    plain = loss.call is not None and loss.call.options.get("ignore_index", -100) == -100
    yield Finding(
        severity=Severity.WARNING,
        message=f"{counted / live:.0%} of the labels in the loss are padding ({counted} of {live} in "
        f"{len(batch.masks)} batches)",
        measured={"padding_labels": counted, "labels": live, "share": round(counted / live, 3)},
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.COLLATOR, Role.TRAINER, Role.TRAIN_CALL),
        proof=Proof(f"changing only the labels at padding changes the loss by {change:.1%}"),
        repair=ignore_padding_labels(batch.label_key, batch.pad_id, batch.eos_id) if plain else None,
        fix=Fix(does="write -100 for the labels of padding: where attention_mask is 0", safety=Safety.SAFE),
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
        fix=Fix(does="keep the tokenizer's attention_mask among the columns of the data set", safety=Safety.SAFE),
    )


def _tell_padding(token: int) -> Repair:
    def change(call: Call) -> Call:
        call.tensors.set_padding(call["model"], token)
        return call

    return Repair(f"write pad_token_id={token} into the model's config", Seam.TRAINER, change)
