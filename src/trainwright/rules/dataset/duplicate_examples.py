"""TW114 duplicate-examples: a data set gives the same rows for one index after another.

Why it matters: an epoch goes over a handful of rows again and again, which are learnt by heart; most of the data that
the data set holds never reach the model, and the loss looks better than ever.
Evidence: the inputs of the rows as they are read by index, which come again at one distance nearly everywhere, and
fewer than half of the rows that the code holds are ever given. Rows that are repeated by design (weighted or balanced
drawing, more turns over all rows) have no such distance, or leave none out.
Fix (unsafe): let `__getitem__` take the rows of its index: `x[i * size : (i + 1) * size]` for batches, `x[i]` for rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core.finding import Finding, Proof, Severity
from trainwright.core.fix import Fix, Safety
from trainwright.core.role import Role
from trainwright.core.rule import rule
from trainwright.stages.dataset import DatasetFacts
from trainwright.stages.setup import SetupFacts


@rule("TW114", Severity.WARNING, raises=False)
def duplicate_examples(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Rows that come again at one distance, while most of what the data set holds is left out."""
    seen = dataset.repetition
    if seen is None or not seen.ignores_index:
        return
    framework = setup.framework or ""
    yield Finding(
        message=f"{seen.read:,} training rows were read by index, with {seen.different:,} different among them, where "
        f"{seen.expression} holds {seen.held:,}: {seen.share:.0%} of them are the row {seen.every:,} before",
        measured={
            "read": seen.read,
            "different": seen.different,
            "held": seen.held,
            "rows_later": seen.every,
            "repeated_share": round(seen.share, 4),
        },
        where=seen.where or setup.place(Role.TRAIN_DATASET, Role.TRAINER),
        proof=Proof(
            f"inputs and label are equal in {seen.share:.0%} of all pairs of rows that lie {seen.every:,} apart; "
            f"{seen.held - seen.different:,} of the {seen.held:,} rows of {seen.expression} are never given"
        ),
        fix=Fix(
            does="take the rows of the index in __getitem__: "
            + ("x[i * size : (i + 1) * size]" if framework == "keras" else "x[i]"),
            safety=Safety.UNSAFE,
        ),
    )
