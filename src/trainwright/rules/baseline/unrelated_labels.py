"""TW905 unrelated-labels: nothing in the inputs tells the labels, and the training learns nothing of them.

Why it matters: One batch can be memorized, but nothing that is learned applies to other rows. No change to the model or
its learning rate helps.
Evidence: The planned training memorizes one batch, and leaves the loss of all other rows at a constant prediction's. A
ridge regression reads no more from the inputs than from permuted labels, though it reads labels that are planted into the
same inputs, and though the inputs have structure: one half of them tells the other.
Fix (manual): Compare some rows with their source: labels that were shuffled, sorted or joined apart from their inputs.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import DatasetFacts, LearningFacts, OverfitFacts, SetupFacts
from trainwright.stages.learning import POWER, UNREADABLE

# Independent random numbers or tokens reach 3, real tables, pictures and texts 12 and more (see misaligned-labels).
STRUCTURED = 6.0
# With fewer rows a probe can miss a relation that a model would find later, also one as strong as the planted one.
FEWEST_ROWS = 150


@rule("TW905", Severity.WARNING, residual=True, foretells=Fate.LEARNS_NOTHING)
def unrelated_labels(
    learning: LearningFacts, overfit: OverfitFacts, dataset: DatasetFacts, setup: SetupFacts
) -> Iterator[Finding]:
    """Labels that neither the training nor a probe learns, of inputs that have structure."""
    found, raw, last = learning.information, dataset.alignment, learning.last
    if (
        found is None
        or last is None
        or not learning.had_its_chance
        or not learning.held_at_constant
        or not overfit.learnt
    ):
        return
    if found.rows < FEWEST_ROWS or not found.single or not found.given.silent:
        return
    if found.power < POWER or found.structure < STRUCTURED or (raw is not None and raw.score >= UNREADABLE):
        return
    seen = found.given
    right = (
        f" ({seen.accuracy:.1%} right, {seen.permuted:.1%} of permuted ones)" if seen.accuracy and seen.permuted else ""
    )
    yield Finding(
        message=f"nothing in the inputs tells the labels of {found.rows:,} rows{right}, and {last.updates:,} updates leave the "
        f"loss at {last.loss:.4g}, a constant prediction's {last.constant:.4g}",
        measured={"rows": found.rows, "score": seen.score, "planted": found.power, "structure": found.structure},
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.LOADER) or dataset.label_place,
        proof=Proof(
            f"one batch is memorized, and labels planted into the same inputs can be read ({found.power:.1f} standard deviations)"
        ),
        fix=Fix(
            does="compare some rows with their source: labels may have been shuffled, sorted or joined apart from their inputs"
        ),
    )
