"""TW1020 rewritten-rows: reading a row changes the row that is stored.

Why it matters: Each epoch trains on rows that the epochs before have changed, scaled again, shifted further or made longer;
evaluation rows, read once, stay as they are. No error says so, and the loss may even fall.
Evidence: What the set stores, when it is first read and at the end of the run; then some rows are read once more, and it changes
again. The line is the one at which it does.
Fix (manual): Copy the row before it is changed (`row.clone()`, `row.copy()`, `list(row)`), or write `row = row - mean` instead of
`row -= mean`.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.rehearsal.record import Record


@rule("TW1020", Severity.WARNING, after="TW1006")
def rewritten_rows(record: Record) -> Iterator[Finding]:
    """A set whose rows change by being read."""
    for one in {found.where: found for found in record.rewritten}.values():
        yield Finding(
            message=f"reading rows of {one.name} changes what it stores ({one.held}): every epoch trains on rows that the "
            "epochs before have changed",
            measured={"rows": one.size},
            where=one.where,
            proof=Proof(
                f"{one.held} differs from what it was when it was first read, and changed again when rows were read once more"
            ),
            fix=Fix(
                does="copy the row before it is changed: row.clone() or row.copy(); row = row - x makes a new one, row -= x does not"
            ),
        )
