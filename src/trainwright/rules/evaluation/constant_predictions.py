"""TW713 constant-predictions: after the short runs, the model predicts a single class for every row.

Why it matters: An accuracy that equals the share of that class shows that nothing was learned from the inputs.
Evidence: The predictions in evaluation mode after training on one batch, and after training on several, compared with
their labels. A model that learns slowly starts like this too, so this is only a note.
Fix (manual): Use more updates or a higher learning_rate; if it is a default, choose one. Check that the information
that distinguishes the rows reaches the last layer.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Role, Severity, rule
from trainwright.core.thresholds import DOMINATES
from trainwright.rules.rates import rate_to_try
from trainwright.stages import BaselineFacts, DatasetFacts, OptimizerFacts, OverfitFacts, SetupFacts

# Fraction of the way from the constant prediction to the floor; with a lower loss, the scores tell rows apart.
LEAST_PROGRESS = 0.1


@rule("TW713", Severity.NOTE, residual=True, foretells=Fate.LEARNS_NOTHING)
def constant_predictions(
    baseline: BaselineFacts, overfit: OverfitFacts, dataset: DatasetFacts, optimizer: OptimizerFacts, setup: SetupFacts
) -> Iterator[Finding]:
    """One predicted class for all rows, both after training on one batch and after training on several."""
    labels, constant = dataset.train.labels, baseline.constant
    if overfit.learnt or overfit.predicted_classes != 1 or (overfit.batch_classes or 0) < 2:
        return
    if baseline.predicted_classes != 1 or (baseline.label_classes or 0) < 2 or constant is None:
        return
    if labels is not None and labels.majority_share >= DOMINATES:  # imbalanced-classes' matter
        return
    if baseline.last < constant - LEAST_PROGRESS * (constant - baseline.floor):
        return
    yield Finding(
        message=f"after {len(overfit.losses)} steps on one batch, and after {baseline.steps} on several, the model predicts "
        f"a single class for every row; the labels there have {baseline.label_classes} classes",
        measured={
            "predicted_classes": 1,
            "label_classes": baseline.label_classes or 0,
            "rows": baseline.rows,
            "loss": baseline.last,
            "loss_of_constant": constant,
        },
        where=setup.place(Role.LEARNING_RATE, Role.ARGUMENTS, Role.MODEL, Role.TRAINER),
        fix=Fix(
            does=f"train for more updates or with {rate_to_try(optimizer)}, and check whether the predictions then differ"
        ),
    )
