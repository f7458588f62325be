"""What an evaluation counts by hand."""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Proof, Severity, rule
from trainwright.rules.fixes import safe
from trainwright.stages import Counter, EvaluationFacts, Quotient


@rule("TW706", Severity.ERROR)
def unreset_metric(evaluation: EvaluationFacts) -> Iterator[Finding]:
    """Evaluation counters whose second pass adds to the first."""
    for counter in evaluation.counters:
        if not counter.survives:
            continue
        once = f"{counter.once:.4g}"
        passes = f"{once} after one pass, {counter.twice:.4g} after two over the same rows"
        begins = f"the second pass begins with the {once} that the first one came to"
        yield Finding(
            message=f"{counter.name} is not reset: {begins if counter.carried else passes}, so it covers all passes so far",
            measured={"once": round(counter.once, 4), "twice": round(counter.twice, 4)},
            where=counter.begun_at or counter.added_at,
            proof=Proof(f"its value before each batch of the first passes, the first of them {counter.start:.4g}")
            if counter.carried
            else Proof(
                f"two passes over the same batches with the same weights added "
                f"{counter.once - counter.start:.4g} and {counter.twice - counter.once:.4g}"
            ),
            fix=safe(_advice_on_reset(counter)),
        )


def _advice_on_reset(counter: Counter) -> str:
    if counter.set_back_by:
        return f"assign 0 to {counter.name.rpartition('.')[2]} in {counter.set_back_by}"
    if "." in counter.name:
        return f"reset {counter.name.split('.')[0]} at the beginning of each pass"
    return f"write {counter.name} = {counter.start:g} at the beginning of each pass, inside the loop over epochs"


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
            fix=safe(f"write {one.written.replace(' = ', ' += ', 1)}"),
        )


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
    yield _divided_wrongly(
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
    yield _divided_wrongly(
        one,
        f"{one.quotient} divides the sum of the batches' accuracies by the number of rows: it would be "
        f"{one.batches / rows:.4g} if all predictions were right",
        "the number of batches",
        one.batches / rows,
    )


def _divided_wrongly(one: Quotient, message: str, right: str, worth: float) -> Finding:
    counts = ", ".join(f"{equal} of {rows}" for equal, rows in one.compared)
    return Finding(
        message=message,
        measured={"quotient": round(worth, 4)},
        where=one.divided_at,
        proof=Proof(f"the evaluation compared {one.batches} batches: {counts} are equal"),
        fix=safe(f"divide {one.name} by {right}"),
    )
