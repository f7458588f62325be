"""TW106 unscaled-inputs: the inputs are unscaled (pixels from 0 to 255, features as large as 1e4).

Why it matters: The first outputs are far too large, one feature drowns out the others, and most of training is spent
on recovering from the bad start.
Evidence: The first loss is far above that of an uninformed model, or the first layer with weights gets the raw
numbers; from the same weights on the same rows, standardized inputs are learned clearly better, on three seeds.
Fix (unsafe): Scale every set with the mean and deviation of the training rows.
"""

from __future__ import annotations

from statistics import fmean
from typing import Any

import numpy as np

from trainwright.core import Diagnosis, Finding, Fix, Role, Safety, Severity, Trial, rule
from trainwright.rules.scaling import BATCHES, STEPS, keep_scaled, reach, real_inputs, rescale, scaled_away
from trainwright.stages import BatchFacts, ColumnFacts, DatasetFacts, ForwardFacts, LossFacts, SetupFacts, TensorFacts

# Initializations assume inputs of unit variance; pixels go up to 255, while standardized values and counts stay below.
LARGE = 30.0
# A model that scales its inputs itself (batch normalization, a division in its forward) begins near chance.
INFLATED_LOSS = 1.5


@rule("TW106", Severity.WARNING)
def unscaled_inputs(
    dataset: DatasetFacts, batch: BatchFacts, forward: ForwardFacts, loss: LossFacts, setup: SetupFacts
) -> Diagnosis:
    """Unscaled inputs that are learned clearly better when standardized."""
    if scaled_away(forward) is not None:
        return
    key, tensor = _largest(batch)
    inflated = bool(loss.value and loss.expected and loss.value > INFLATED_LOSS * loss.expected)
    if tensor is None or not (inflated or _reaches_weights(forward)):
        return
    scale = _scale(dataset.train.column(key), tensor)
    outcome = yield Trial(change=rescale(key, scale, f"standardise {key}"), steps=STEPS, batches=BATCHES)
    if not outcome.clearly_better:
        return
    low, high = tensor.minimum or 0.0, tensor.maximum or 0.0
    before, after = fmean(outcome.before), fmean(outcome.after)
    yield Finding(
        message=f"{key} holds values from {low:.4g} to {high:.4g}: after {outcome.steps} updates the loss is "
        f"{before:.3g}, on standardized inputs {after:.3g}",
        measured={"minimum": low, "maximum": high, "loss": before, "loss_standardised": after},
        where=setup.place(Role.TRAIN_DATASET, Role.TRAIN_DATASET_MADE, Role.TRAINER),
        proof=outcome,
        repair=keep_scaled(key, scale, f"standardise {key}"),
        fix=Fix(
            does=f"subtract the training mean of {key} and divide by its deviation, in every set", safety=Safety.UNSAFE
        ),
    )


def _reaches_weights(forward: ForwardFacts) -> bool:
    """Whether the first layer with weights gets unscaled numbers, because the model does not scale them itself."""
    first = next((m for m in forward.modules if m.leaf and m.sizes and m.inputs), None)
    if first is None or "Norm" in first.kind or not first.inputs[0].is_float:
        return False
    weights = [p for p in forward.parameters if p.module == first.name]
    if weights and not any(p.trainable and p.may_be_untrained for p in weights):
        return False  # it was trained on numbers of some scale, perhaps of this one
    return reach(first.inputs[0]) > LARGE


def _largest(batch: BatchFacts) -> tuple[str, TensorFacts | None]:
    """The input with the largest values, if they exceed LARGE."""
    found = real_inputs(batch)
    key = max(found, key=lambda k: reach(found[k]), default="")
    return (key, found[key]) if key and reach(found[key]) > LARGE else (key, None)


def _scale(column: ColumnFacts | None, tensor: TensorFacts) -> tuple[Any, Any]:
    """Mean and deviation: of each feature over the training rows if rows are vectors, otherwise of all values."""
    if column and column.feature_means and tensor.shape[1:] == (len(column.feature_means),):
        if column.maximum is not None and abs(column.maximum) >= abs(tensor.maximum or 0.0) * 0.99:
            deviations = np.asarray(column.feature_deviations)
            return np.asarray(column.feature_means), np.where(deviations > 0, deviations, 1.0)
    return tensor.mean or 0.0, tensor.deviation or 1.0
