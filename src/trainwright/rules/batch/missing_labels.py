"""TW204 missing-labels: no key of the batch has a name under which the model accepts labels.

Why it matters: Without labels the model returns scores and no loss, and training stops at its first step.
Evidence: The keys of the batch, the arguments of forward, and a column of the data set that looks like the label.
Error: `The model did not return a loss from the inputs`
Error: `KeyError: 'labels'`
Error: `missing 1 required positional argument: 'labels'`
Fix (safe): Rename the column to a name that the model accepts. For a language model, use a collator that makes labels
from the inputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from trainwright.core import Failure, Fate, Finding, Fix, Proof, Repair, Role, Safety, Severity, Tensors, rule
from trainwright.rules.repairs import change_batches, rename_column
from trainwright.stages import BatchFacts, ColumnFacts, DatasetFacts, ForwardFacts, LossFacts, SetupFacts

_LABELS = ("labels", "label", "label_ids", "targets", "target")
_NO_LOSS = "did not return a loss"
# Common names for label columns; they also count as a prefix or suffix.
_LIKE_LABELS = re.compile(
    r"(?i)(^|_)(labels?|targets?|class(es)?|category|sentiment|y|score|rating|stars|intent|answer|tags?|ner_tags|outcome)(_|$)"
)
_IDENTIFIERS = re.compile(r"(?i)(^|_)(idx|id|index|level_0)(_|$)")


@rule("TW204", Severity.ERROR, foretells=Fate.STOPS)
def missing_labels(
    batch: BatchFacts, setup: SetupFacts, dataset: DatasetFacts, forward: ForwardFacts | None, loss: LossFacts | None
) -> Iterator[Finding]:
    """No loss, or a failure, because the batch has no labels that the model accepts."""
    failure = (forward.failure if forward else None) or (loss.failure if loss else None)
    wanted = next((n for n in _LABELS if n in batch.accepts), "labels")
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
            fix=Fix(does=f'rename the column: dataset.rename_column("{found}", "{wanted}")', safety=Safety.SAFE),
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
        return any(n in batch.tensors and (n in _LABELS or _LIKE_LABELS.search(n)) for n in quoted - {wanted})
    return failure.type in ("KeyError", "TypeError") and bool(quoted & set(_LABELS))


def _candidate(batch: BatchFacts, dataset: DatasetFacts) -> str | None:
    """The column that looks like labels: by its name, or else the only one with one number per row."""
    spare = [c for c in dataset.train.columns if c.name not in batch.accepts and _may_be_labels(c)]
    named = [c.name for c in spare if _LIKE_LABELS.search(c.name)]
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

    def change(given: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
        return {wanted if k == column else k: v for k, v in given.items()}

    return change_batches(f"pass {column} to the model as {wanted}", change)


def _labels_of_inputs(wanted: str, pad_id: int | None) -> Repair:
    def change(given: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
        tokens = tensors.to_numpy(given["input_ids"])
        real = tensors.to_numpy(given["attention_mask"]) != 0 if "attention_mask" in given else tokens != pad_id
        return {**given, wanted: tensors.like(np.where(real, tokens, -100), given["input_ids"])}

    return change_batches(f"make the {wanted} from the inputs, with -100 at padding", change)
