"""TW1022 lost-columns: columns of the data tell more of the label than all that the model receives.

Why it matters: No error is raised. A Trainer drops the columns that forward does not name, a collator or a transform leaves
one out, a model takes its inputs through **kwargs and misses one: the model learns what is left.
Evidence: Of rows that were trained on, the raw columns beside what the model received. A simple learner on the raw row is
clearly better, controls with permuted labels and a planted column hold, and the columns, which are no texts, are not found
among the inputs.
Fix (manual): Follow the columns from the data set to forward: remove_unused_columns=False in TrainingArguments, the
collator's and the transform's keys, the names that forward takes.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.rehearsal.record import Record
from trainwright.review.profiles import profiles


@rule("TW1022", Severity.WARNING, after="TW1006")
def lost_columns(record: Record) -> Iterator[Finding]:
    """An output of which the raw rows tell more than the received ones."""
    texts = {name for raw in record.raw for name, values in raw.columns.items() if values.shape[1] > 1}
    for one in profiles(record):
        columns = [
            name for name in one.carriers if name not in texts
        ]  # of a text, pieces are read in another way than tokens
        if columns:
            names = ", ".join(columns)
            yield Finding(
                message=f"{names} of the data does not reach the model and tells of the label: a simple learner has "
                f"{one.name} {one.raw:.2f} on the raw rows, {one.received:.2f} on what the model receives, where the model "
                f"has {one.model:.2f} and a constant {one.constant:.2f}",
                measured={"columns": names, "raw": one.raw, "received": one.received, "model": one.model},
                where=record.where,
                proof=Proof(f"{one.rows:,} rows that were trained on, each answered without itself"),
                fix=Fix(
                    does=f"follow {names} from the data set to forward: remove_unused_columns=False in a Trainer's arguments, "
                    "the keys that a collator or a transform keeps, the names that forward takes"
                ),
            )
