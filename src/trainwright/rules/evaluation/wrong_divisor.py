"""TW762 wrong-divisor: a sum over rows is divided by the number of batches, or a sum of means by the number of rows.

Why it matters: The accuracy is wrong by a factor of the batch size: above 1, or near 0 for the best model.
Evidence: The number of equal predictions and labels in each batch of the evaluation, and what the divisor counts.
Fix (safe): Divide a sum over rows by len(loader.dataset), and a sum of batches' means by len(loader).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Safety, Severity, rule
from trainwright.stages import EvaluationFacts, Quotient


@rule("TW762", Severity.ERROR)
def wrong_divisor(evaluation: EvaluationFacts) -> Iterator[Finding]:
    """A sum of equal predictions and labels whose divisor counts something else."""
    for one in evaluation.quotients:
        if not one.added or not one.compared or one.mean is None:
            continue
        if one.mean and one.by_rows:
            yield from _too_small(one)
        elif not one.mean and not one.by_rows:
            yield from _too_great(one)


def _too_great(one: Quotient) -> Iterator[Finding]:
    equal, rows = (sum(counts) for counts in zip(*one.compared))
    if equal <= one.batches:
        return  # a mean of at most one per batch can be a share
    yield _finding(
        one,
        f"{one.quotient} divides the number of equal rows by the number of batches: it is {equal / one.batches:.4g} for "
        f"{one.batches} batches of which {equal} of {rows} rows are right",
        "the number of rows",
        equal / one.batches,
    )


def _too_small(one: Quotient) -> Iterator[Finding]:
    rows = sum(count for _, count in one.compared)
    if rows <= one.batches:
        return  # batches of one row
    yield _finding(
        one,
        f"{one.quotient} divides the sum of the batches' accuracies by the number of rows: it would be "
        f"{one.batches / rows:.4g} if all predictions were right",
        "the number of batches",
        one.batches / rows,
    )


def _finding(one: Quotient, message: str, right: str, worth: float) -> Finding:
    counts = ", ".join(f"{equal} of {rows}" for equal, rows in one.compared)
    return Finding(
        message=message,
        measured={"quotient": round(worth, 4)},
        where=one.divided_at,
        proof=Proof(f"the evaluation compared {one.batches} batches: {counts} are equal"),
        fix=Fix(does=f"divide {one.name} by {right}", safety=Safety.SAFE),
    )
