"""TW123 extreme-values: a few rows have a value that is far from that of all other rows.

Why it matters: One such row makes a loss and a gradient that outweigh all others, and a scale computed with it presses
the other rows together. It is often a typing error, another unit, or a code for "unknown" such as -999.
Evidence: The values of the whole column: the extreme ones are at least a hundred times further from the median than any
other. A training step with such rows in the batch has at least ten times the loss of a step on others, or raises.
Fix (unsafe): Correct these rows or drop them; encode "unknown" in a column of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Safety, Severity, role_of_split, rule
from trainwright.rules.repairs import leave_rows_out
from trainwright.stages import DatasetFacts, Extremes, SetupFacts

# Batches of a fresh model differ in their loss by a small factor.
LARGER_LOSS = 10.0


@rule("TW123", Severity.WARNING)
def extreme_values(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Extreme rows that dominate the loss of the batch that holds them."""
    train = dataset.train
    role = role_of_split(train.name)
    for one in train.extremes:
        proof = _harm(one)
        if proof is None:
            continue
        what = f'"{one.column}"' if not one.column.isdigit() else f"position {one.column} of the items"
        where = what if one.feature is None else f"{what}, feature {one.feature}"
        first, rows = one.rows[0], "1 row" if one.count == 1 else f"{one.count} rows"
        yield Finding(
            message=f"{rows} of {one.counted} in {where} {'has' if one.count == 1 else 'have'} a value like {one.value:.6g} "
            f"(row {first}), {one.times:.3g} times further from the median than any other; the others lie between "
            f"{one.low:.4g} and {one.high:.4g}",
            measured={
                "column": one.column,
                "rows": one.count,
                "first_row": first,
                "value": one.value,
                "times": one.times,
            },
            where=setup.place(role.made, role, Role.TRAINER),
            proof=proof,
            repair=leave_rows_out(role, train.rows, one.rows) if train.rows and len(one.rows) == one.count else None,
            fix=Fix(does=f"check row {first}: correct or drop such rows, or clip the column", safety=Safety.UNSAFE),
        )


def _harm(one: Extremes) -> Proof | None:
    """What a step on such rows shows; None if it is like any other."""
    if one.failure:
        return Proof(f"a training step on such rows, and not on others: {one.failure}")
    if one.loss is None or one.usual_loss is None:
        return None
    if math.isfinite(one.loss) and one.loss < LARGER_LOSS * max(one.usual_loss, 0.0):
        return None
    return Proof(
        f"a step with such rows in the batch has a loss of {one.loss:.4g}; on other rows it is {one.usual_loss:.4g}"
    )
