"""TW761 overwritten-count: the evaluation keeps the count of its last batch and divides it by the whole set.

Why it matters: The accuracy or loss is too small by about the number of batches, and is that of the last batch only.
Evidence: The statement ran for several batches and assigned to the variable, which began at 0; the divisor counts all
batches or rows.
Fix (safe): Add each batch's count: += instead of =.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Safety, Severity, rule
from trainwright.stages import EvaluationFacts


@rule("TW761", Severity.ERROR)
def overwritten_count(evaluation: EvaluationFacts) -> Iterator[Finding]:
    """A quotient of one batch's count and the count of all batches or rows."""
    for one in evaluation.quotients:
        if one.added:
            continue
        counts = ", ".join(str(equal) for equal, _ in one.compared)
        counted = f" ({counts} equal)" if counts else ""
        unit = "rows" if one.by_rows else "batches"
        yield Finding(
            message=f"each batch overwrites {one.name}, so {one.quotient} divides the last batch's value by the number "
            f"of all {unit}",
            measured={"batches": one.batches},
            where=one.where,
            proof=Proof(f"a pass over {one.batches} batches{counted} assigned {one.name} in each and added nothing up"),
            fix=Fix(does=f"write {one.written.replace(' = ', ' += ', 1)}", safety=Safety.SAFE),
        )
