"""Parts of a batch that are missing, or not where they are expected."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from trainwright.core import (
    Call,
    Failure,
    Fate,
    Finding,
    Fix,
    Proof,
    Repair,
    Role,
    Safety,
    Seam,
    Severity,
    Tensors,
    rule,
)
from trainwright.frameworks.label_names import AMONG_INPUTS, ARGUMENTS, find_label, is_like_label
from trainwright.rules.fixes import safe
from trainwright.rules.repairs import change_batches, rename_column
from trainwright.stages import IGNORED_LABEL, BatchFacts, ColumnFacts, DatasetFacts, ForwardFacts, LossFacts, SetupFacts

_NO_COLUMNS = "No columns in the dataset match"
# The exceptions that a collator or model raises when a column is missing; the message quotes the column's name.
_RAISED_FOR_COLUMNS = ("KeyError", "TypeError", "AttributeError", "ValueError")


@rule("TW203", Severity.ERROR)
def discarded_columns(
    batch: BatchFacts, setup: SetupFacts, dataset: DatasetFacts | None, forward: ForwardFacts | None
) -> Iterator[Finding]:
    """A failure caused by a missing column that the data set has but the Trainer removed."""
    failure = batch.failure or (forward.failure if forward else None)
    if failure is None or not batch.dropped_columns:
        return
    missed = _missed(failure, batch, forward)
    if not missed:
        return
    who = (
        f"the collator {batch.collator}" if batch.failure and _NO_COLUMNS not in failure.message else setup.model_class
    )
    names = ", ".join(missed)
    texts = tuple(c.name for c in dataset.train.columns if c.kind == "text") if dataset else ()
    spare = () if set(texts) & set(missed) else tuple(t for t in texts if t in batch.dropped_columns)
    more = f", and remove_columns={list(spare)} from the data set" if spare and batch.failure is None else ""
    yield Finding(
        message=f"{setup.words.trainer} drops {len(batch.dropped_columns)} columns that forward does not name, and {who} needs "
        f"{names} of them",
        measured={"dropped": ", ".join(batch.dropped_columns), "needed": names},
        where=setup.place(Role.REMOVE_UNUSED_COLUMNS, Role.ARGUMENTS, Role.TRAINER, Role.TRAIN_CALL),
        proof=Proof(f"the data set has {names}; without it: {failure}"),
        repair=_keep(spare),
        fix=safe(f"write remove_unused_columns=False in {setup.words.arguments}(…){more}"),
    )


def _missed(failure: Failure, batch: BatchFacts, forward: ForwardFacts | None) -> tuple[str, ...]:
    """The dropped columns that the failure mentions; all but labels if forward names none of its inputs."""
    opaque = batch.accepts_any and not [n for n in batch.accepts if n not in ARGUMENTS]
    if _NO_COLUMNS in failure.message:
        return batch.dropped_columns if opaque else ()
    if "unexpected keyword argument" in failure.message:
        return ()  # it came where it was not wanted
    # An English word such as "positive" may occur in any message; a column name is quoted or contains underscores.
    quoted = (
        set(re.findall(r"['\"`](\w+)['\"`]|(?<!\w)(\w+_\w+)", failure.message))
        if failure.type in _RAISED_FOR_COLUMNS
        else set()
    )
    named = tuple(c for c in batch.dropped_columns if any(c in pair for pair in quoted))
    if named:
        return named
    return batch.dropped_columns if opaque and batch.failure is None and forward and forward.failure else ()


def _keep(spare: tuple[str, ...]) -> Repair:
    """Keep all columns except text, which no default collator accepts."""

    def change(call: Call) -> Call:
        object.__setattr__(call["arguments"], "remove_unused_columns", False)
        sets = {r: call.given[r] for r in ("train_dataset", "eval_dataset") if hasattr(call.given[r], "remove_columns")}
        return call.replace(
            **{
                role: data.remove_columns([c for c in spare if c in data.column_names])
                for role, data in sets.items()
                if spare and isinstance(data.column_names, list)
            }
        )

    return Repair("keep the columns (remove_unused_columns=False)", Seam.TRAINER, change)


_NO_LOSS = "did not return a loss"
_IDENTIFIERS = re.compile(r"(?i)(^|_)(idx|id|index|level_0)(_|$)")


@rule("TW204", Severity.ERROR, foretells=Fate.STOPS)
def missing_labels(
    batch: BatchFacts, setup: SetupFacts, dataset: DatasetFacts, forward: ForwardFacts | None, loss: LossFacts | None
) -> Iterator[Finding]:
    """No loss, or a failure, because the batch has no labels that the model accepts."""
    failure = (forward.failure if forward else None) or (loss.failure if loss else None)
    wanted = find_label(batch.accepts, AMONG_INPUTS) or "labels"
    if failure is None or wanted in batch.tensors or not _speaks_of_labels(failure, wanted, batch):
        return
    found = _candidate(batch, dataset)
    keys = ", ".join(batch.tensors)
    measured = {"batch_keys": keys, "model_takes": wanted, **({"column": found} if found else {})}
    proof = Proof(f"the batch contains {keys}; {failure}")
    if found:
        dropped = " and is dropped" if found in batch.dropped_columns else ""
        yield Finding(
            message=f"the batch has no {wanted}, which the model needs: the data set's column {found!r} looks like "
            f"them{dropped}",
            measured=measured,
            proof=proof,
            where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER, Role.TRAIN_CALL),
            repair=_rename(found, wanted, batch),
            fix=safe(f'rename the column: dataset.rename_column("{found}", "{wanted}")'),
        )
        return
    next_token = forward is not None and forward.causal and "input_ids" in batch.tensors
    does = (
        setup.words.collator.format(value="DataCollatorForLanguageModeling(tokenizer, mlm=False)")
        if next_token
        else (f"add the labels to the data set as a column {wanted}")
    )
    yield Finding(
        message=f"the batch has no {wanted}, which the model needs, and no column of the data set looks like them",
        measured=measured,
        proof=proof,
        where=setup.place(
            *((Role.COLLATOR,) if next_token else (Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET)),
            Role.TRAINER,
            Role.TRAIN_CALL,
        ),
        repair=_labels_of_inputs(wanted, batch.pad_id) if next_token else None,
        fix=Fix(does=does, safety=Safety.SAFE if next_token else Safety.MANUAL),
    )


def _speaks_of_labels(failure: Failure, wanted: str, batch: BatchFacts) -> bool:
    if _NO_LOSS in failure.message:
        return True
    quoted = set(re.findall(r"'(\w+)'", failure.message))
    if failure.type == "TypeError" and "unexpected keyword" in failure.message:
        return any(n in batch.tensors and is_like_label(n) for n in quoted - {wanted})
    return failure.type in ("KeyError", "TypeError") and bool(quoted & set(AMONG_INPUTS))


def _candidate(batch: BatchFacts, dataset: DatasetFacts) -> str | None:
    """The column that looks like labels: by its name, or else the only one with one number per row."""
    spare = [c for c in dataset.train.columns if c.name not in batch.accepts and _may_be_labels(c)]
    named = [c.name for c in spare if is_like_label(c.name)]
    numbers = [c.name for c in spare if c.kind in ("integer", "float", "boolean")]
    return named[0] if named else numbers[0] if len(numbers) == 1 else None


def _may_be_labels(column: ColumnFacts) -> bool:
    counts_rows = column.minimum == 0 and column.maximum == column.counted - 1
    return (
        column.kind in ("integer", "float", "boolean", "numbers")
        and not _IDENTIFIERS.search(column.name)
        and not (counts_rows and column.counted > 2)
    )


def _rename(column: str, wanted: str, batch: BatchFacts) -> Repair:
    if column not in batch.tensors:
        return rename_column(column, wanted)

    return change_batches(
        f"pass {column} to the model as {wanted}",
        lambda given, tensors: {wanted if k == column else k: v for k, v in given.items()},
    )


def _labels_of_inputs(wanted: str, pad_id: int | None) -> Repair:
    def change(given: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
        tokens = tensors.to_numpy(given["input_ids"])
        real = tensors.to_numpy(given["attention_mask"]) != 0 if "attention_mask" in given else tokens != pad_id
        return {**given, wanted: tensors.like(np.where(real, tokens, IGNORED_LABEL), given["input_ids"])}

    return change_batches(f"make the {wanted} from the inputs, with -100 at padding", change)


# The key of a batch's target if it has no name of its own.
TARGET = "y"


@rule("TW205", Severity.ERROR)
def labels_inside_inputs(batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Inputs that contain the labels, and no targets, for a loss that needs targets."""
    key = misplaced_labels(batch)
    if key is None or (batch.targets_found and "loss" not in setup.arguments):
        return
    loss, keys = batch.targets_wanted_by, ", ".join(batch.tensors)
    is_taken = key in batch.accepts and set(batch.accepts) != set(batch.tensors)
    own = ", or compile without a loss: the model takes labels and computes its own" if is_taken else ""
    message = f'the loss "{loss}" needs targets, but the data yields none: "{key}" is one of the inputs ({keys})'
    if batch.targets_found:
        message = (
            f'"{key}" is one of the inputs ({keys}), from which the model computes its own loss, but the string loss "{loss}" '
            "is trained on instead"
        )
    yield Finding(
        message=message,
        measured={"loss": loss, "key": key, "keys": keys},
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAIN_CALL),
        proof=Proof(f"a batch of {batch.rows} rows is one dictionary of {keys}, not a pair (inputs, targets)"),
        repair=_apart(key),
        fix=safe(
            f'yield pairs: (inputs without "{key}", their "{key}"); with to_tf_dataset, label_cols=["{key}"]{own}'
        ),
    )


def misplaced_labels(batch: BatchFacts) -> str | None:
    """The key of the inputs with the targets that the loss needs."""
    if batch.target_keys != () or not batch.targets_wanted_by:
        return None
    return find_label(batch.tensors)


def _apart(key: str) -> Repair:
    return change_batches(
        f'move "{key}" from the inputs to the targets',
        lambda batch, tensors: {**{k: v for k, v in batch.items() if k != key}, TARGET: batch[key]},
    )


@rule("TW206", Severity.ERROR, foretells=Fate.STOPS)
def missing_targets(batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Inputs without targets, for a loss that needs them."""
    if batch.target_keys != () or not batch.targets_wanted_by or not batch.tensors or misplaced_labels(batch):
        return
    keys, loss = ", ".join(batch.tensors), batch.targets_wanted_by
    # For arrays, the call lacks its second argument; for other data, each batch lacks its second part.
    made = (Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET)
    roles = (*(() if batch.collator == "fit" else made), Role.TRAIN_CALL)
    yield Finding(
        message=f'the loss "{loss}" needs targets, but the data yields none: a batch holds only {keys}',
        measured={"loss": loss, "keys": keys, "rows": batch.rows},
        where=setup.place(*roles),
        proof=Proof(f"a batch of {batch.rows} rows has no second part"),
        fix=Fix(does="provide the targets: fit(x, y), or pairs (inputs, targets) from the data set or generator"),
    )
