"""TW108 non-finite-data: inputs or labels are NaN, infinite or missing.

Why it matters: A single such value makes the loss NaN, and from that step on all weights; the Trainer logs it as a loss
of 0.0. A missing label stops the collator with a message about padding.
Evidence: A count over all rows of the columns that reach the model, and a training step on these rows compared with one
on others. Infinite masks, and labels that the loss ignores, pass that step and are not reported.
Error: `cannot convert float NaN to integer`
Error: `must be real number, not NoneType`
Fix (unsafe): Drop or fill these rows, and find out where they come from.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Safety, Severity, role_of_split, rule
from trainwright.rules.repairs import leave_rows_out
from trainwright.stages import UNTRIED, ColumnFacts, DatasetFacts, SetupFacts, SplitFacts

# Leaving out more than half of the rows is not a fix.
MOST_DROPPED_SHARE = 0.5


@rule("TW108", Severity.ERROR)
def non_finite_data(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Columns that reach the model with missing or non-finite values that training cannot handle."""
    for split in dataset.splits:
        outcome = dataset.unusable_rows.get(split.name, "")
        if not outcome:
            continue
        for column in split.columns:
            if _reaches(column, split, dataset) and (column.non_finite or column.missing):
                yield _finding(column, split, outcome, setup)


def _reaches(column: ColumnFacts, split: SplitFacts, dataset: DatasetFacts) -> bool:
    label = split.labels.column if split.labels else None
    return column.name == label or column.name in dataset.accepts or column.name.isdigit()


def _finding(column: ColumnFacts, split: SplitFacts, outcome: str, setup: SetupFacts) -> Finding:
    rows = sorted({*column.non_finite_rows, *column.missing_rows})
    parts = []
    if column.non_finite:
        parts.append(f"{column.non_finite} NaN or infinite {'value' if column.non_finite == 1 else 'values'}")
    if column.missing:
        parts.append(f"{column.missing} missing {'value' if column.missing == 1 else 'values'}")
    role = role_of_split(split.name)
    # The rows of a stream are numbered differently in the next pass.
    drop = split.kind == "map" and len(rows) <= MOST_DROPPED_SHARE * column.counted
    return Finding(
        message=f'the column "{column.name}" of the {split.name} set has {" and ".join(parts)} in {len(rows)} of '
        f"{column.counted} rows, first in row {rows[0]}",
        measured={"column": column.name, "rows": len(rows), "first_row": rows[0], "counted": column.counted},
        where=setup.place(role.made, role, Role.TRAINER),
        proof=Proof(
            f"counted over {column.counted} rows; {outcome}"
            if outcome.startswith(UNTRIED)
            else f"a training step on such rows, and not on others: {outcome}"
        ),
        repair=leave_rows_out(role, split.rows or column.counted, rows) if drop else None,
        fix=Fix(
            does=f'drop or fill the {len(rows)} rows where "{column.name}" is missing or not finite',
            safety=Safety.UNSAFE,
        ),
    )
