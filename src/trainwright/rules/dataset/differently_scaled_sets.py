"""TW122 differently-scaled-sets: the training rows and the evaluation rows are scaled differently.

Why it matters: The model is evaluated on a scale it never saw in training, so its scores mean nothing.
Evidence: Means and deviations differ by a factor of ten, and a probe fitted to training rows predicts the evaluation
rows clearly better once they have the training mean and deviation.
Fix (unsafe): Scale both sets with the mean and deviation of the training rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.stages import DatasetFacts, Scaling, SetupFacts

# Beyond the noise of the evaluation rows, in standard errors; and enough to matter, in shares of the targets' variance.
SURE, ENOUGH = 4.0, 0.1


@rule("TW122", Severity.WARNING, after="TW106")
def differently_scaled_sets(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """One set is scaled, the other is not."""
    seen = dataset.scaling
    if seen is None or not harms(seen):
        return
    yield Finding(
        message=f"{seen.column} is scaled differently in evaluation and training: a feature has mean "
        f"{seen.evaluation_mean:.4g} and deviation {seen.evaluation_deviation:.4g} there, {seen.mean:.4g} and "
        f"{seen.deviation:.4g} in training",
        measured={
            "training_mean": seen.mean,
            "training_deviation": seen.deviation,
            "evaluation_mean": seen.evaluation_mean,
            "evaluation_deviation": seen.evaluation_deviation,
            "far_share": round(seen.far_share, 3),
        },
        where=setup.place(Role.EVAL_DATASET_MADE, Role.EVAL_DATASET)
        or dataset.evaluation_place
        or setup.place(Role.TRAINER)
        if seen.training_is_scaled
        else setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAINER),
        proof=Proof(
            f"the squared error of a probe fitted to the training rows, where an uninformed model has 1, is {seen.error:.2g} "
            f"on the evaluation rows and {seen.error_rescaled:.2g} once they have training's mean and deviation "
            f"({seen.rows:,} rows)"
        ),
        fix=Fix(
            does=f"scale {seen.column} of both sets with the numbers of the training rows: scaler.fit_transform(train), "
            "scaler.transform(evaluation), or the same division",
            safety=Safety.UNSAFE,
        ),
    )


def harms(seen: Scaling | None) -> bool:
    """Whether evaluation rows are predicted clearly better with the scale of the training rows."""
    return seen is not None and seen.gain > ENOUGH and seen.gain_deviations > SURE
