"""TW203 discarded-columns: the Trainer removes columns that the collator or the model needs.

Why it matters: The Trainer keeps only the columns that forward names. A forward(**inputs), or a collator that reads
text, images or other columns, then misses data that the data set has, and the message does not say who removed it.
Evidence: The columns of the data set compared with those that reach the collator, and what failed because of the
missing ones.
Error: `No columns in the dataset match the model's forward method signature`
Error: `transformers/trainer.py…KeyError: '…'`
Fix (safe): Set remove_unused_columns=False in TrainingArguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwright.core import Call, Failure, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.stages import BatchFacts, DatasetFacts, ForwardFacts, SetupFacts

_NO_COLUMNS = "No columns in the dataset match"
# The exceptions that a collator or model raises when a column is missing; the message quotes the column's name.
_MISSING = ("KeyError", "TypeError", "AttributeError", "ValueError")
_LABELS = ("label", "labels", "label_ids")


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
        fix=Fix(does=f"write remove_unused_columns=False in {setup.words.arguments}(…){more}", safety=Safety.SAFE),
    )


def _missed(failure: Failure, batch: BatchFacts, forward: ForwardFacts | None) -> tuple[str, ...]:
    """The dropped columns that the failure mentions; all but labels if forward names none of its inputs."""
    opaque = batch.accepts_any and not [n for n in batch.accepts if n not in _LABELS]
    if _NO_COLUMNS in failure.message:
        return batch.dropped_columns if opaque else ()
    if "unexpected keyword argument" in failure.message:
        return ()  # it came where it was not wanted
    # An English word such as "positive" may occur in any message; a column name is quoted or contains underscores.
    quoted = (
        set(re.findall(r"['\"`](\w+)['\"`]|(?<!\w)(\w+_\w+)", failure.message)) if failure.type in _MISSING else set()
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
