"""TW128 failing-rows: a training or evaluation step fails on a few rows, and on no others.

Why it matters: The training stops at the step whose batch holds such a row, or its loss becomes NaN there, often hours
after it began.
Evidence: The extreme rows of the whole set (longest, shortest, largest, smallest, rarest, unreadable) are put through the
script's own step, and a batch that fails is taken apart. The step fails with this row alone among usual rows, and not
without it.
Fix (unsafe): Correct the row or leave it out; otherwise let the code handle such rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Safety, Severity, role_of_split, rule
from trainwright.stages import BadRow, DatasetFacts, OddRowFacts, Reading, SetupFacts, SourceCell


@rule("TW128", Severity.ERROR)
def failing_rows(rows: OddRowFacts, dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Rows with which a step raises, or has a loss that is not finite or outweighs all others."""
    for bad in rows.bad:
        if bad.odd.row in _known(dataset, bad.split):
            continue
        role, cell = role_of_split(bad.split), bad.cell
        step = "an evaluation step" if bad.evaluated else "a training step"
        yield Finding(
            message=f"row {bad.odd.row:,}{_of(rows.readings.get(bad.split))} of the {bad.split} set: {step} with it "
            f"{_what(bad)}; {_why(bad)}{_from(cell)}",
            measured={"row": bad.odd.row, "split": bad.split, **_at(cell)},
            where=setup.place(role.made, role, Role.TRAINER),
            proof=Proof(f"the same step succeeds on other rows, and fails with row {bad.odd.row:,} alone among them"),
            severity=Severity.ERROR if bad.failure or bad.loss != bad.loss else Severity.WARNING,
            fix=Fix(
                does=f"correct or drop {_named(bad)}, or let the code handle such rows",
                safety=Safety.UNSAFE,
            ),
        )


def _known(dataset: DatasetFacts, name: str) -> set[int]:
    """Rows that sharper rules speak of."""
    split = next((s for s in dataset.splits if s.name == name), None)
    if split is None:
        return set()
    far = {row for one in split.extremes if one.loss is not None or one.failure for row in one.rows}
    unusable = dataset.unusable_rows.get(name)
    return far | {r for c in split.columns if unusable for r in (*c.non_finite_rows, *c.missing_rows)}


def _of(reading: Reading | None) -> str:
    return f" of {reading.rows:,}" if reading is not None and reading.rows is not None else ""


def _what(bad: BadRow) -> str:
    if bad.failure:
        return f"raises {bad.failure}"
    return f"has a loss of {bad.loss:.4g}, and of at most {bad.usual_loss:.4g} with others"


def _why(bad: BadRow) -> str:
    if not bad.odd.column:
        return "it cannot be read"
    return f'its "{bad.odd.column}" has {bad.odd.why}'


def _from(cell: SourceCell | None) -> str:
    if cell is None:
        return ""
    column = f', column "{cell.column}"' if cell.column else ""
    value = f" ({cell.value})" if cell.value else ""
    file = f", {cell.file}{f' line {cell.line:,}' if cell.line is not None else ''}" if cell.file else ""
    return f". It is row {cell.row:,} of {cell.expression}{column}{value}{file}"


def _named(bad: BadRow) -> str:
    cell = bad.cell
    if cell is None or not cell.file:
        return f"row {bad.odd.row:,}"
    return f"row {bad.odd.row:,} ({cell.file}{f' line {cell.line:,}' if cell.line is not None else ''})"


def _at(cell: SourceCell | None) -> dict[str, int | str]:
    if cell is None:
        return {}
    line = {"line": cell.line} if cell.line is not None else {}
    return {"table": cell.expression, "table_row": cell.row, "column": cell.column, "file": cell.file, **line}
