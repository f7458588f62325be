"""TW114 duplicate-examples: a data set returns the same rows for different indices.

Why it matters: An epoch repeats a handful of rows, which the model memorizes. Most of the data never reaches it, and
the loss looks excellent.
Evidence: The inputs of rows read by index repeat at a constant interval, and fewer than half of the data set's rows are
ever returned. Rows repeated on purpose (weighted or balanced sampling, several passes over all rows) have no such
interval, or leave no row out.
Fix (unsafe): Let `__getitem__` use its index: `x[i * size : (i + 1) * size]` for batches, `x[i]` for rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.stages import DatasetFacts, SetupFacts


@rule("TW114", Severity.WARNING, raises=False)
def duplicate_examples(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Rows that repeat at a constant interval, while most of the data set's rows are never returned."""
    seen = dataset.repetition
    if seen is None or not seen.ignores_index:
        return
    yield Finding(
        message=f"{seen.read:,} training rows read by index contain only {seen.different:,} distinct rows, although "
        f"{seen.expression} holds {seen.held:,}; {seen.share:.0%} repeat the row {seen.every:,} positions earlier",
        measured={
            "read": seen.read,
            "different": seen.different,
            "held": seen.held,
            "rows_later": seen.every,
            "repeated_share": round(seen.share, 4),
        },
        where=seen.where or setup.place(Role.TRAIN_DATASET, Role.TRAINER),
        proof=Proof(
            f"inputs and label are equal in {seen.share:.0%} of all pairs of rows that are {seen.every:,} apart; "
            f"{seen.held - seen.different:,} of the {seen.held:,} rows of {seen.expression} are never returned"
        ),
        fix=Fix(
            does=f"make __getitem__ return the rows of its index: {setup.words.rows_of_index}", safety=Safety.UNSAFE
        ),
    )
