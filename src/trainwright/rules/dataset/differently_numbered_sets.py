"""TW124 differently-numbered-sets: a category or word has one number in training and another in the evaluation set.

Why it matters: The model learned what the numbers mean in training. In the evaluation set the same numbers stand for other
names, so its scores are near chance although nothing raises an error.
Evidence: The names are still in a table of the script. In each set, every name has one number in all rows; the numbers of
the names that both sets have are compared.
Fix (manual): Build the numbering once, from the training rows, and use it for both sets: fit the encoder on training and
only transform the evaluation set, or use one dictionary or vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import DatasetFacts, SetupFacts


@rule("TW124", Severity.ERROR, raises=False)
def differently_numbered_sets(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Names whose numbers differ between the two sets."""
    seen = dataset.renumbered
    if seen is None:
        return
    there = seen.table or "the evaluation set"
    kind = "words" if seen.feature is None else "categories"
    where = seen.column if seen.feature in (None, 0) else f"{seen.column}, feature {seen.feature}"
    yield Finding(
        message=f"{seen.differing:,} of {seen.names:,} {kind} have another number in {there} than in training "
        f"(column {where}): {seen.example!r} is {seen.in_training} in training and {seen.in_evaluation} in {there}",
        measured={"names_in_both_sets": seen.names, "numbered_otherwise": seen.differing},
        where=setup.place(Role.EVAL_DATASET_MADE, Role.EVAL_DATASET, Role.TRAIN_DATASET_MADE, Role.TRAINER),
        proof=Proof(
            f"each name has one number in all rows of a set; the names are those of {seen.sources[0]} and {seen.sources[1]}"
        ),
        fix=Fix(
            does="make one numbering from the training rows (an encoder's fit, a dictionary, a vocabulary) and use it for both sets"
        ),
    )
