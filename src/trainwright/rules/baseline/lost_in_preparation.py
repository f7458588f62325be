"""TW902 lost-in-preparation: the rows of the data set tell the label, and what the model and the loss get does not.

Why it matters: No error is raised; the model cannot learn what never reaches it.
Evidence: The planned training leaves the loss at a constant prediction's. A ridge regression reads the label from the
rows of the data set, and not from the model's inputs and the loss's targets in as many rows of the batches.
Fix (manual): Look at one batch beside its rows: the collator, the transform or the step pairs inputs with other rows'
labels, or overwrites one of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import DatasetFacts, LearningFacts, SetupFacts
from trainwright.stages.learning import READABLE


@rule("TW902", Severity.WARNING, residual=True, foretells=Fate.LEARNS_NOTHING)
def lost_in_preparation(learning: LearningFacts, dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Labels that a probe reads from the rows, and not from the batches."""
    raw, found = dataset.alignment, learning.information
    if raw is None or found is None or not learning.had_its_chance or not learning.held_at_constant:
        return
    # Scores grow at least as fast as the number of rows, so this is what the rows' labels reach in as many rows.
    reached = raw.score * min(1.0, found.rows / raw.rows)
    if not raw.single or raw.score < READABLE or not found.given.silent or max(reached, found.power) < READABLE:
        return
    batches = f"{found.rows:,} rows of the batches"
    told = "the label can be read from the rows of the data set"
    if raw.accuracy is not None and raw.permuted_accuracy is not None and found.given.accuracy is not None:
        told += f" ({raw.accuracy:.0%} right, {raw.permuted_accuracy:.0%} if they are permuted)"
        batches += f" ({found.given.accuracy:.0%} right)"
    yield Finding(
        message=f"{told}, but not from what the model and the loss are given in {batches}",
        measured={"score_in_rows": raw.score, "score_in_batches": found.given.score},
        where=setup.place(Role.COLLATOR, Role.LOADER, Role.TRAIN_DATASET_MADE, Role.TRAINER, Role.ARGUMENTS),
        proof=Proof(
            f"the planned training was run and learned nothing that holds for other rows; as many rows of the data set "
            f"reach {reached:.0f} standard deviations, the batches {found.given.score:.1f}"
        ),
        fix=Fix(
            does="compare one batch with the rows it came from: the collator, the transform or the step pairs inputs with "
            "labels of other rows, or overwrites one of them"
        ),
    )
