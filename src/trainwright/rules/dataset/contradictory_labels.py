"""TW125 contradictory-labels: training rows with the same inputs have different labels.

Why it matters: No model can get more than one of the labels right. The loss stays high, and what is learned of the other
rows is blurred.
Evidence: Rows with equal inputs are counted, with the accuracy that their labels permit at best. The rows are so rich that
they are not equal by chance: they differ from every other row in many values. It is a note if most labels agree, as where
several people labeled the same rows.
Fix (manual): Find the step that repeats the inputs (an index, a join, a cache) or mixes up the labels; otherwise decide
on one label for each row.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import Contradictions, DatasetFacts, SetupFacts

# Fewer contradictions hardly lower what can be predicted; this is a choice, not a measurement.
SMALLEST_SHARE = 0.1
# Rows of few columns with few values are often equal by chance, and nearly equal to others; see train_eval_overlap.
FEWEST_DIFFERING = 4
# People who label the same rows agree on more than this, or the labels are of little use.
PERMITTED = 0.8


@rule("TW125", Severity.WARNING, raises=False)
def contradictory_labels(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Many rows with a twin of another class."""
    seen = dataset.contradictions
    if seen is None or not contradict(seen):
        return
    first, twin = seen.example
    yield Finding(
        severity=Severity.WARNING if seen.best_accuracy <= PERMITTED else Severity.NOTE,
        message=f"{seen.contradictory:,} of {seen.rows:,} training rows have the same inputs as a row with another label "
        f"(rows {first} and {twin}): at best {seen.best_accuracy:.0%} of the labels can be predicted",
        measured={
            "contradictory_rows": seen.contradictory,
            "rows": seen.rows,
            "best_accuracy": round(seen.best_accuracy, 4),
        },
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET)
        or dataset.label_place
        or setup.place(Role.TRAINER),
        proof=Proof(
            f"equal inputs with different labels, counted over {seen.rows:,} rows; such a row differs from the most similar "
            f"other one in {seen.nearest_differing:.0f} of {seen.values} values"
        ),
        fix=Fix(
            does="find the step that repeats inputs (an index, a join, a cache) or mixes up labels; otherwise decide on one "
            "label for each row"
        ),
    )


def contradict(seen: Contradictions | None) -> bool:
    """Whether so many rows contradict each other that it is no chance."""
    return (
        seen is not None
        and seen.contradictory >= SMALLEST_SHARE * seen.rows
        and seen.nearest_differing >= FEWEST_DIFFERING
    )
