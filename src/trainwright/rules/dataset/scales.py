"""The scale of inputs and targets."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np

from trainwright.core import Diagnosis, Finding, Outcome, Repair, Role, Seam, Severity, Tensors, Trial, rule
from trainwright.rules.fixes import unsafe
from trainwright.rules.repairs import change_batches, scale_learning_rate
from trainwright.stages import (
    BatchFacts,
    ColumnFacts,
    DatasetFacts,
    ForwardFacts,
    LossFacts,
    ModuleFacts,
    OptimizerFacts,
    OverfitFacts,
    SetupFacts,
    TensorFacts,
)

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
        fix=unsafe(f"subtract the training mean of {key} and divide by its deviation, in every set"),
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


@rule("TW121", Severity.WARNING, after="TW106")
def inputs_scaled_twice(batch: BatchFacts, forward: ForwardFacts, loss: LossFacts, setup: SetupFacts) -> Diagnosis:
    """Inputs that the model scales down to almost nothing, and that are learned clearly better when scaled once."""
    layer = scaled_away(forward)
    if layer is None or loss.value is None:
        return
    inputs = real_inputs(batch)
    given, made = layer.inputs[0], layer.output
    if len(inputs) != 1 or made is None:
        return
    key, factor = next(iter(inputs)), reach(made) / reach(given)
    undone = f"undo the scaling of {layer.name}"
    outcome = yield Trial(change=rescale(key, (0.0, factor), undone), steps=STEPS, batches=BATCHES)
    if not outcome.clearly_better:
        return
    before, after = fmean(outcome.before), fmean(outcome.after)
    yield Finding(
        message=f"{layer.name} ({layer.kind}) gets values up to {reach(given):.3g} and outputs values up to {reach(made):.2g}: "
        f"after {outcome.steps} updates the loss is {before:.3g}, or {after:.3g} without this scaling",
        measured={"largest_given": reach(given), "largest_left": reach(made), "loss": before, "loss_without": after},
        where=layer.where or setup.place(Role.MODEL),
        proof=outcome,
        repair=keep_scaled(key, (0.0, factor), undone),
        fix=unsafe(f"scale the inputs once: remove {layer.name}, or the scaling before it"),
    )


# The power of the targets' scale with which each loss grows.
POWERS = {"mse_loss": 2, "l1_loss": 1, "smooth_l1_loss": 1, "huber_loss": 1}
# Outputs of a freshly initialized layer lie within about 3 of 0.
FAR = 10.0
# Activations with nonnegative outputs: their targets are scaled, but not shifted.
NEVER_NEGATIVE = ("relu", "softplus", "exponential")
STEPS_OF_TARGETS = 16
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
    haste = MOST_HASTE if planned is None else min(MOST_HASTE, max(1.0, planned / STEPS_OF_TARGETS))
    seen = yield Trial(
        change=_standardise(key, moved, spread, how),
        against=scale_learning_rate(haste),
        steps=STEPS_OF_TARGETS,
        batches=BATCHES,
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
    from_centre = f"({key} - {_plain(moved)})" if moved else key
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
        fix=unsafe(f"train on {from_centre} / {_plain(spread)}, and scale predictions back for the metrics"),
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


def _standardise(key: str, centre: float, spread: float, how: str) -> Repair:
    return Repair(
        f"{how} targets",
        Seam.BATCH,
        lambda call: call.replace(**{key: (call[key] - centre) / spread}) if key in call.given else call,
    )


def _kept(key: str, centre: float, spread: float, how: str) -> Repair:
    return change_batches(
        f"{how} targets",
        lambda batch, tensors: {**batch, key: (batch[key] - centre) / spread} if key in batch else batch,
    )


# Pixels divided by 255 twice reach at most 0.004; inputs between 0 and 1, or with unit variance, exceed this.
SMALL = 0.01
# The steps of a trial with another scale.
STEPS = 24


def reach(tensor: TensorFacts) -> float:
    """The largest distance of a value from zero."""
    return max(abs(tensor.minimum or 0.0), abs(tensor.maximum or 0.0))


def real_inputs(batch: BatchFacts) -> dict[str, TensorFacts]:
    """The floating-point inputs, as the model gets them."""
    return {
        k: t
        for k, t in batch.tensors.items()
        if (t.is_float or k in batch.made_floats)
        and k not in (batch.label_key, *(batch.target_keys or ()))
        and "mask" not in k
        and "label" not in k
    }


def scaled_away(forward: ForwardFacts) -> ModuleFacts | None:
    """The layer without weights that leaves almost nothing for the first layer with weights."""
    first = next((i for i, m in enumerate(forward.modules) if m.leaf and m.sizes), None)
    if first is None or not (given := forward.modules[first].inputs) or not given[0].is_float:
        return None
    if not 0 < reach(given[0]) < SMALL:
        return None
    before = [m for m in forward.modules[:first] if m.leaf and m.inputs and m.output and reach(m.inputs[0]) >= SMALL]
    return next((m for m in reversed(before) if m.output and reach(m.output) < SMALL), None)


def rescale(key: str, scale: tuple[Any, Any], does: str) -> Repair:
    """For a trial, subtract a mean from an input and divide by a deviation."""

    return Repair(
        does,
        Seam.BATCH,
        lambda call: call.replace(**{key: _scaled(call[key], scale, call.tensors)}) if key in call.given else call,
    )


def keep_scaled(key: str, scale: tuple[Any, Any], does: str) -> Repair:
    """The same for the rest of the check."""

    return change_batches(
        does, lambda batch, tensors: {**batch, key: _scaled(batch[key], scale, tensors)} if key in batch else batch
    )


def _scaled(tensor: Any, scale: tuple[Any, Any], tensors: Tensors) -> Any:
    values = (tensors.to_numpy(tensor) - scale[0]) / scale[1]
    integers = "int" in str(tensor.dtype)  # that the model makes floats of
    return tensors.like(values, tensor, "float32" if integers else None)
