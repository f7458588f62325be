"""TW1023 other-scale-evaluated: the model is evaluated on inputs of another scale than it was trained on.

Why it matters: The held-out score is poor, or worse than it has to be, and will be where the model is used: pixels are divided
by 255 in training only, a set is scaled by its own statistics, a unit differs.
Evidence: Mean and deviation of the inputs as the model received them, in training and in evaluation. Another scale is one of a
third or three times the deviation, or a mean three deviations away.
Fix (manual): Prepare all sets with one function and the statistics of the training set.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.rehearsal.record import Record
from trainwright.review.sheet_inputs import scaled_otherwise

MOST_NAMED = 3


@rule("TW1023", Severity.WARNING, after="TW1006")
def other_scale_evaluated(record: Record) -> Iterator[Finding]:
    """Columns whose held-out values have another scale."""
    far = scaled_otherwise(record)
    if not far:
        return
    trained, first = far[0]
    names = ", ".join(one.name for one, _ in far[:MOST_NAMED])
    more = f" and {len(far) - MOST_NAMED} more" if len(far) > MOST_NAMED else ""
    yield Finding(
        message=f"{names}{more} of the inputs: {first.mean:.3g} ± {first.deviation:.3g} where the model is evaluated, "
        f"{trained.mean:.3g} ± {trained.deviation:.3g} in training",
        measured={
            "columns": len(far),
            "training_deviation": trained.deviation or 0.0,
            "evaluated_deviation": first.deviation or 0.0,
        },
        where=next((one.where for one in reversed(record.passes) if one.where is not None), None),
        proof=Proof(f"{first.rows:,} evaluated rows and {trained.rows:,} of training, as the model received them"),
        fix=Fix(does="prepare all sets with one function, and with the statistics of the training set"),
    )
