"""TW107 unscaled-targets: a regression's targets are far outside the range of the model's initial outputs.

Why it matters: Outputs begin near 0 with a spread of about 1. The steps are spent on reaching the targets' mean, and
the size of the loss disrupts the weights.
Evidence: From the same weights on the same rows, with targets standardized by the training rows, the loss falls
clearly further below that of predicting the mean, on three seeds, than the unscaled targets allow, even at ten times
the learning rate.
Fix (unsafe): Standardize the targets, and scale predictions back for the metrics.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import Any

from trainwright.core import (
    Call,
    Diagnosis,
    Finding,
    Fix,
    Outcome,
    Repair,
    Role,
    Safety,
    Seam,
    Severity,
    Tensors,
    Trial,
    rule,
)
from trainwright.rules.repairs import change_batches, scale_learning_rate
from trainwright.stages import BatchFacts, DatasetFacts, LossFacts, OptimizerFacts, OverfitFacts, SetupFacts

# The power of the targets' scale with which each loss grows.
POWERS = {"mse_loss": 2, "l1_loss": 1, "smooth_l1_loss": 1, "huber_loss": 1}
# Outputs of a freshly initialized layer lie within about 3 of 0.
FAR = 10.0
# Activations with nonnegative outputs: their targets are scaled, but not shifted.
NEVER_NEGATIVE = ("relu", "softplus", "exponential")
STEPS = 16
BATCHES = 3
# A full training goes further than the trial's few steps; a higher rate makes up for that, within limits.
MOST_HASTE = 10.0
# A loss above this share of the loss of the best constant prediction: next to nothing was learned of the inputs.
AT_CONSTANT = 0.95


@rule("TW107", Severity.WARNING)
def unscaled_targets(
    dataset: DatasetFacts,
    batch: BatchFacts,
    loss: LossFacts,
    optimizer: OptimizerFacts,
    overfit: OverfitFacts,
    setup: SetupFacts,
) -> Diagnosis:
    """Targets with a large mean or spread that are learned clearly better when standardized."""
    labels, power = dataset.train.labels, POWERS.get(loss.function)
    key = batch.label_key
    if labels is None or labels.kind not in ("real", "class") or power is None or key is None or overfit.learnt:
        return
    centre, spread = labels.mean or 0.0, labels.deviation or 0.0
    targets = batch.labels
    if spread <= 0 or max(abs(centre), spread) < FAR or targets is None or not targets.is_float:
        return
    never_negative = loss.call is not None and loss.call.activation in NEVER_NEGATIVE
    moved = 0.0 if never_negative else centre
    how = "scaled" if never_negative else "standardized"
    planned = optimizer.planned_updates
    haste = MOST_HASTE if planned is None else min(MOST_HASTE, max(1.0, planned / STEPS))
    seen = yield Trial(
        change=_standardise(key, moved, spread, how), against=scale_learning_rate(haste), steps=STEPS, batches=BATCHES
    )
    unit = "variance" if power == 2 else "deviation"
    outcome = replace(
        seen,
        changed=f"{seen.changed} (losses in units of their {unit})",
        before=tuple(x / spread**power for x in seen.before),
        start=(),
    )
    if not outcome.clearly_better or not _at_constant(seen, spread**power):
        return
    yield Finding(
        message=f"the targets have mean {_plain(centre)} and standard deviation {_plain(spread)}: after {outcome.steps} updates the loss "
        f"is {fmean(outcome.before):.3g} in units of their {unit}, with {how} targets it is {fmean(outcome.after):.3g}",
        measured={
            "target_mean": centre,
            "target_deviation": spread,
            "loss": fmean(outcome.before),
            "loss_standardised": fmean(outcome.after),
        },
        where=setup.place(Role.TRAIN_DATASET, Role.TRAIN_DATASET_MADE, Role.TRAINER),
        proof=outcome,
        repair=_kept(key, moved, spread, how),
        fix=Fix(
            does=f"train on {_new(key, moved)} / {_plain(spread)}, and scale predictions back for the metrics",
            safety=Safety.UNSAFE,
        ),
    )


def _at_constant(seen: Outcome, of_mean: float) -> bool:
    """Whether the unscaled targets leave the loss at that of a constant prediction on the same rows, on each seed.

    Args:
        of_mean: the squared loss of predicting the mean of all rows, if that of these rows is not known.
    """
    constants = seen.constant or tuple(of_mean / AT_CONSTANT for _ in seen.before)
    return all(reached > AT_CONSTANT * constant for reached, constant in zip(seen.before, constants))


def _plain(value: float) -> str:
    """Four digits, without an exponent: 402100, 0.01235."""
    return f"{float(f'{value:.4g}'):.15g}"


def _new(key: str, centre: float) -> str:
    return f"({key} - {_plain(centre)})" if centre else key


def _standardise(key: str, centre: float, spread: float, how: str) -> Repair:
    def change(call: Call) -> Call:
        return call.replace(**{key: (call[key] - centre) / spread}) if key in call.given else call

    return Repair(f"{how} targets", Seam.BATCH, change)


def _kept(key: str, centre: float, spread: float, how: str) -> Repair:
    def change(batch: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
        return {**batch, key: (batch[key] - centre) / spread} if key in batch else batch

    return change_batches(f"{how} targets", change)
