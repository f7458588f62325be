"""Rows of unequal lengths."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from trainwright.core import (
    Call,
    Edit,
    Fate,
    Finding,
    Fix,
    Place,
    Proof,
    RemoveKeyword,
    Repair,
    Role,
    Seam,
    SetKeyword,
    Severity,
    rule,
)
from trainwright.frameworks.error_texts import UNEQUAL_ROWS
from trainwright.frameworks.label_names import ARGUMENTS
from trainwright.rules.fixes import safe
from trainwright.rules.padding import LabelPadding, PaddingCollator, RowPadding
from trainwright.rules.repairs import change_batches
from trainwright.stages import IGNORED_LABEL, BatchFacts, DatasetFacts, SetupFacts, TokenizerFacts

# NumPy's words.
UNSTACKED = "all input arrays must have the same shape"
# What is collated with where there is no tokenizer, and what a tokenizer pads.
DEFAULT_COLLATOR = "default_data_collator"
_PADDED = frozenset({"input_ids", "attention_mask", "token_type_ids"})


@rule("TW201", Severity.ERROR, foretells=Fate.STOPS)
def ragged_batch(batch: BatchFacts, setup: SetupFacts, dataset: DatasetFacts) -> Iterator[Finding]:
    """A batch that could not be formed because its rows have unequal lengths."""
    if batch.failure is not None and (said := UNEQUAL_ROWS.search(batch.failure.message)):
        yield _of_lengths(batch, setup, int(said[1]), int(said[2]))
        return
    if batch.failure is None:
        yield from _of_objects(batch, setup)
        return
    if not batch.equal_rows_collate and UNSTACKED in batch.failure.message:
        yield _unstacked(batch, setup)
        return
    if not batch.equal_rows_collate or set(batch.forms_without) & set(ARGUMENTS):
        return
    where = setup.place(Role.COLLATOR, Role.TRAINER, Role.TRAIN_CALL)
    if batch.failure.where not in (None, setup.place(Role.TRAIN_CALL)):
        where = batch.failure.where  # the line of the user's own collate function
    ragged = {k: v for k, v in batch.item_lengths.items() if len(set(v)) > 1}
    if not ragged and len(set(batch.stacked_lengths)) > 1:  # made of the items on the way
        yield _stacked(batch, where)
        return
    if not ragged:
        yield from _of_shapes(batch, setup)
        return
    key, lengths = next(iter(ragged.items()))
    tokenizer = dataset.tokenizer if "input_ids" in ragged else None
    if tokenizer is not None:
        does = f"collate with DataCollatorWithPadding({tokenizer.expression or 'tokenizer'})"
    else:
        does = "collate with padding, so that all rows of a batch have the same length"
    yield Finding(
        message=f"{batch.collator} stacks rows of {min(lengths)} to {max(lengths)} {'values' if key.isdigit() else key} into one tensor, without padding",
        measured={"column": key, "shortest": min(lengths), "longest": max(lengths), "collator": batch.collator},
        where=where,
        repair=_pad(tuple(ragged), batch, tokenizer) if batch.item_columns else None,
        fix=_by_the_trainer(ragged, batch, setup, tokenizer) or safe(does),
    )


def _by_the_trainer(
    ragged: Collection[str], batch: BatchFacts, setup: SetupFacts, tokenizer: TokenizerFacts | None
) -> Fix | None:
    """The edits that let the object that trains pad by itself: it does with a tokenizer, if it was given no collator."""
    built_by, who = setup.words.built_by, setup.words.trainer
    trainer, collator, given = (setup.place(role) for role in (Role.TRAINER, Role.COLLATOR, Role.TOKENIZER))
    if (
        trainer is None
        or not built_by
        or tokenizer is None
        or batch.collator != DEFAULT_COLLATOR
        or not set(ragged) <= _PADDED
    ):
        return None
    name = tokenizer.expression
    if not name.isidentifier():
        return None
    edits: list[Edit] = []
    does = f"collate with DataCollatorWithPadding({name})"
    if collator is not None:
        edits.append(RemoveKeyword(collator.file, collator.line, "data_collator"))
        does += f": without data_collator=, {who} does so"
    if given is None:
        edits.append(SetKeyword(trainer.file, trainer.line, "processing_class", name, function=built_by))
        does += f"{' if it is' if collator else f', which {who} does if it is'} given processing_class={name}"
    return safe(does, tuple(edits)) if edits else None


def _of_lengths(batch: BatchFacts, setup: SetupFacts, one: int, other: int) -> Finding:
    return Finding(
        message=f"{batch.collator} stacks rows of {min(one, other)} and {max(one, other)} values into one tensor, without padding",
        measured={"shortest": min(one, other), "longest": max(one, other), "collator": batch.collator},
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAIN_CALL),
        proof=Proof(f"two rows of one batch have {one} and {other} values"),
        fix=Fix(
            does="pad when batching: .padded_batch(…) instead of .batch(…), or make the rows equally long before that"
        ),
    )


def _unstacked(batch: BatchFacts, setup: SetupFacts) -> Finding:
    """NumPy refused to stack the rows, in code that the check does not run itself."""
    made = (Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.COLLATOR, Role.TRAIN_CALL)
    return Finding(
        message=f"{batch.collator or 'the script'} stacks unequal rows into one array, without padding",
        measured={"collator": batch.collator},
        where=(batch.failure.where if batch.failure else None) or setup.place(*made),
        fix=Fix(
            does="pad where rows are stacked (in to_tf_dataset: "
            'collate_fn=DataCollatorWithPadding(tokenizer, return_tensors="np")), or make them equally long before that'
        ),
    )


def _of_objects(batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """An array of Python lists of different lengths: a batch can be formed, but not converted to a tensor.

    Lists of tensors do not count: a model may pack them itself.
    """
    arrays = [k for k, kind in batch.others.items() if kind.startswith("object array")]
    ragged = [k for k in arrays if len(set(batch.item_lengths.get(k, ()))) > 1]
    for key in ragged[:1]:
        shortest, longest = min(batch.item_lengths[key]), max(batch.item_lengths[key])
        # pad_sequences converts its input to integers by default.
        floats = ', dtype="float32"' if batch.others[key].endswith(" of floats") else ""
        yield Finding(
            message=f"{key} is an array of lists of {shortest} to {longest} values: rows that differ in length cannot "
            f"become a tensor",
            measured={"column": key, "shortest": shortest, "longest": longest},
            where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAIN_CALL),
            proof=Proof(f"{key} is an {batch.others[key]}; padded to one length, a batch is a tensor"),
            repair=_pad_objects(tuple(ragged)),
            fix=safe(f"pad the rows to the same length: {setup.words.pad_arrays.format(value=key, type=floats)}"),
        )


def _pad_objects(keys: tuple[str, ...]) -> Repair:
    return change_batches(
        "pad the rows of a batch to the longest row",
        lambda batch, tensors: (
            batch | {k: np.stack(tensors.padded([np.asarray(row) for row in batch[k]])) for k in keys if k in batch}
        ),
    )


def _stacked(batch: BatchFacts, where: Place | None) -> Finding:
    shortest, longest = min(batch.stacked_lengths), max(batch.stacked_lengths)
    return Finding(
        message=f"{batch.collator} stacks rows of {shortest} to {longest} values into one tensor, without padding",
        measured={"shortest": shortest, "longest": longest, "collator": batch.collator},
        where=where,
        fix=safe("collate with padding, so that all rows of a batch have the same length"),
    )


def _of_shapes(batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Arrays of one length but different shapes: images of several sizes."""
    for key, shapes in batch.item_shapes.items():
        if len(shapes) > 1:
            yield Finding(
                message=f"{batch.collator} stacks {key} of {len(shapes)} different shapes into one tensor, among them {shapes[0]} and {shapes[-1]}",
                measured={"column": key, "shapes": len(shapes), "smallest": str(shapes[0]), "largest": str(shapes[-1])},
                where=setup.place(
                    Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.COLLATOR, Role.TRAINER, Role.TRAIN_CALL
                ),
                fix=Fix(does=f"make every row's {key} the same size (resize, crop or pad) in the data set"),
            )
            return


def _pad(columns: tuple[str, ...], batch: BatchFacts, tokenizer: TokenizerFacts | None) -> Repair:
    fill = dict.fromkeys(columns, 0) | dict.fromkeys(ARGUMENTS, IGNORED_LABEL)
    masked = "attention_mask" in batch.accepts and "input_ids" in columns

    def change(call: Call) -> Call:
        own = {"input_ids": _pad_id(call)}
        if tokenizer is not None:
            return call.replace(collator=PaddingCollator(call["tokenizer"], call["collator"]))
        return call.replace(collator=RowPadding(call["collator"], columns, {**fill, **own}, call.tensors, masked))

    by = "with the tokenizer in the script's scope" if tokenizer else "to its longest, by each column's kind"
    return Repair(f"pad the rows of a batch {by}", Seam.TRAINER, change)


def _pad_id(call: Call) -> int:
    """The padding token in the model's configuration."""
    configured = getattr(getattr(call["model"], "config", None), "pad_token_id", None)
    return configured if isinstance(configured, int) and configured >= 0 else 0


@rule("TW202", Severity.ERROR, foretells=Fate.STOPS)
def unpadded_labels(batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A batch that can be formed once its labels are left out."""
    key = next((k for k in batch.forms_without if k in ARGUMENTS), None)
    if batch.failure is None or key is None or key not in batch.item_lengths:
        return
    lengths = batch.item_lengths[key]
    per_token = lengths == batch.item_lengths.get("input_ids")
    better = "DataCollatorForTokenClassification" if per_token else "DataCollatorForSeq2Seq"
    yield Finding(
        message=f"the {key} of a batch have {min(lengths)} to {max(lengths)} entries per row, and {batch.collator} "
        f"pads only the inputs",
        measured={"shortest": min(lengths), "longest": max(lengths), "collator": batch.collator},
        where=setup.place(Role.COLLATOR, Role.TRAINER, Role.TRAIN_CALL),
        proof=Proof(f"the same batch can be formed without its {key}; with them: {batch.failure.type}"),
        repair=_pad_labels(key),
        fix=safe(setup.words.collator.format(value=f"{better}(tokenizer)")),
    )


def _pad_labels(key: str) -> Repair:
    return Repair(
        f"pad the {key} of a batch with {IGNORED_LABEL}",
        Seam.TRAINER,
        lambda call: call.replace(collator=LabelPadding(call["collator"], key, call.tensors)),
    )
