"""TW763 reshuffled-predictions: predictions and labels come from two passes over a set that is shuffled anew each time.

Why it matters: The prediction of one row is compared with the label of another. The confusion matrix and the scores are at
chance, although the model is good and fit reports so.
Evidence: Two passes over the set give labels in different orders, and a later line reads it once more.
Fix (manual): Take predictions and labels in one pass, or build the set for testing without shuffling (shuffle=False).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Severity, rule
from trainwright.stages import EvaluationFacts


@rule("TW763", Severity.ERROR, raises=False)
def reshuffled_predictions(evaluation: EvaluationFacts) -> Iterator[Finding]:
    """Predictions on a set whose order is another in the pass that reads the labels."""
    seen = evaluation.reshuffled
    if seen is None:
        return
    yield Finding(
        message=f"{seen.expression} is shuffled anew in each pass: the predictions made here and the labels read in line "
        f"{seen.labels_at.line} are those of different rows",
        where=seen.where,
        proof=Proof(f"two passes over {seen.expression} gave the labels in different orders"),
        fix=Fix(
            does="collect predictions and labels in one pass over the set, or build it without shuffling (shuffle=False)"
        ),
    )
