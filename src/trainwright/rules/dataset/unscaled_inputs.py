"""TW106 unscaled-inputs: the inputs are unscaled (pixels from 0 to 255, features around 1e4), or scaled twice.

Why it matters: the first outputs are far too large, one feature drowns the others, and most of training is spent on
getting out of where it began. What was divided by 255 twice differs by less than 0.004, and the first layer hardly sees it.
Evidence: the first loss is far above that of a model that knows nothing, or the first layer with weights is given the raw
numbers, or next to nothing; from the same weights on the same rows, standardised inputs, or inputs scaled once, are learnt
clearly better, on three seeds. Or one of the sets is scaled and the other is not: means and deviations differ by a factor
of ten, and a probe that is fitted to training rows predicts the evaluation rows clearly better once these are brought to
training's mean and deviation.
Fix (unsafe): scale with the mean and deviation of the training rows, in every set; leave the second scaling out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trainwright.core.finding import Finding, Proof, Severity
from trainwright.core.fix import Fix, Safety
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.role import Role
from trainwright.core.rule import Diagnosis, rule
from trainwright.core.tensors import Tensors
from trainwright.core.trial import Trial
from trainwright.rules.rates import mean
from trainwright.rules.repairs import change_batches
from trainwright.stages.batch import BatchFacts
from trainwright.stages.dataset import ColumnFacts, DatasetFacts, Scaling
from trainwright.stages.forward import ForwardFacts, ModuleFacts
from trainwright.stages.loss import LossFacts
from trainwright.stages.setup import SetupFacts
from trainwright.stages.tensor import TensorFacts

# Initialisations are made for inputs of unit variance; pixels go to 255, and standardised ones or counts stay below.
LARGE = 30.0
# A model that scales its inputs itself (batch normalisation, a division in its forward) begins near chance.
INFLATED_LOSS = 1.5
# Pixels that were divided by 255 twice end at 0.004; inputs between 0 and 1, or of unit variance, reach beyond this.
SMALL = 0.01
STEPS = 24
BATCHES = 3
# Beyond the noise of the evaluation rows, in standard errors; and enough to matter, in shares of the targets' variance.
SURE, ENOUGH = 4.0, 0.1


@rule("TW106", Severity.WARNING)
def unscaled_inputs(
    dataset: DatasetFacts, batch: BatchFacts, forward: ForwardFacts, loss: LossFacts, setup: SetupFacts
) -> Diagnosis:
    """Inputs of a raw scale, or scaled away, that are learnt clearly better otherwise; sets scaled differently."""
    if (scaling := dataset.scaling) is not None and scaling.gain > ENOUGH and scaling.gain_deviations > SURE:
        yield _of_evaluation(scaling, setup)
    if (layer := _scaled_away(forward)) is not None:
        yield from _scaled_twice(layer, batch, setup)
        return
    key, tensor = _largest(batch)
    inflated = bool(loss.value and loss.expected and loss.value > INFLATED_LOSS * loss.expected)
    if tensor is None or not (inflated or _reaches_weights(forward)):
        return
    scale = _scale(dataset.train.column(key), tensor)
    outcome = yield Trial(change=_rescale(key, scale, f"standardise {key}"), steps=STEPS, batches=BATCHES)
    if not outcome.clearly_better:
        return
    low, high = tensor.minimum or 0.0, tensor.maximum or 0.0
    before, after = mean(outcome.before), mean(outcome.after)
    yield Finding(
        message=f"{key} holds values from {low:.4g} to {high:.4g}: after {outcome.steps} updates the loss is "
        f"{before:.3g}, on standardised inputs {after:.3g}",
        measured={"minimum": low, "maximum": high, "loss": before, "loss_standardised": after},
        where=setup.place(Role.TRAIN_DATASET, Role.TRAIN_DATASET_MADE, Role.TRAINER),
        proof=outcome,
        repair=_kept(key, scale, f"standardise {key}"),
        fix=Fix(
            does=f"subtract the training mean of {key} and divide by its deviation, in every set",
            safety=Safety.UNSAFE,
        ),
    )


def _reaches_weights(forward: ForwardFacts) -> bool:
    """Whether the first layer with weights is given numbers of a raw scale: the model does not scale them itself."""
    first = next((m for m in forward.modules if m.leaf and m.sizes and m.inputs), None)
    if first is None or "Norm" in first.kind or not first.inputs[0].is_float:
        return False
    weights = [p for p in forward.parameters if p.module == first.name]
    if weights and not any(p.trainable and p.may_be_untrained for p in weights):
        return False  # it was trained on numbers of some scale, perhaps of this one
    return _reach(first.inputs[0]) > LARGE


def _of_evaluation(seen: Scaling, setup: SetupFacts) -> Finding:
    return Finding(
        message=f"{seen.column} is scaled otherwise in evaluation than in training: a feature has mean "
        f"{seen.evaluation_mean:.4g} and deviation {seen.evaluation_deviation:.4g} there, {seen.mean:.4g} and "
        f"{seen.deviation:.4g} in training",
        measured={
            "training_mean": seen.mean,
            "training_deviation": seen.deviation,
            "evaluation_mean": seen.evaluation_mean,
            "evaluation_deviation": seen.evaluation_deviation,
            "far_share": round(seen.far_share, 3),
        },
        where=setup.place(Role.EVAL_DATASET_MADE, Role.EVAL_DATASET, Role.TRAINER)
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


def _scaled_away(forward: ForwardFacts) -> ModuleFacts | None:
    """The layer without weights that leaves next to nothing for the first layer that has some."""
    first = next((i for i, m in enumerate(forward.modules) if m.leaf and m.sizes), None)
    if first is None or not (given := forward.modules[first].inputs) or not given[0].is_float:
        return None
    if not 0 < _reach(given[0]) < SMALL:
        return None
    before = [
        m
        for m in forward.modules[:first]
        if m.leaf and m.inputs and m.output and _reach(m.inputs[0]) >= SMALL
    ]
    return next((m for m in reversed(before) if m.output and _reach(m.output) < SMALL), None)


def _scaled_twice(layer: ModuleFacts, batch: BatchFacts, setup: SetupFacts) -> Diagnosis:
    inputs = _inputs(batch)
    given, made = layer.inputs[0], layer.output
    if len(inputs) != 1 or made is None:
        return
    key, factor = next(iter(inputs)), _reach(made) / _reach(given)
    undone = f"undo the scaling of {layer.name}"
    outcome = yield Trial(change=_rescale(key, (0.0, factor), undone), steps=STEPS, batches=BATCHES)
    if not outcome.clearly_better:
        return
    before, after = mean(outcome.before), mean(outcome.after)
    yield Finding(
        message=f"{layer.name} ({layer.kind}) is given values up to {_reach(given):.3g} and passes on values up to {_reach(made):.2g}: "
        f"after {outcome.steps} updates the loss is {before:.3g}, without that scaling {after:.3g}",
        measured={
            "largest_given": _reach(given),
            "largest_left": _reach(made),
            "loss": before,
            "loss_without": after,
        },
        where=layer.where or setup.place(Role.MODEL),
        proof=outcome,
        repair=_kept(key, (0.0, factor), undone),
        fix=Fix(
            does=f"scale the inputs once: leave out {layer.name}, or what scaled them before",
            safety=Safety.UNSAFE,
        ),
    )


def _reach(tensor: TensorFacts) -> float:
    """The largest distance of a value from zero."""
    return max(abs(tensor.minimum or 0.0), abs(tensor.maximum or 0.0))


def _inputs(batch: BatchFacts) -> dict[str, TensorFacts]:
    """The inputs of floating-point numbers, as the model takes them."""
    return {
        k: t
        for k, t in batch.tensors.items()
        if (t.is_float or k in batch.made_floats)
        and k not in (batch.label_key, *(batch.target_keys or ()))
        and "mask" not in k
        and "label" not in k
    }


def _largest(batch: BatchFacts) -> tuple[str, TensorFacts | None]:
    """The input whose values go farthest, where beyond LARGE."""
    found = _inputs(batch)
    key = max(found, key=lambda k: _reach(found[k]), default="")
    return (key, found[key]) if key and _reach(found[key]) > LARGE else (key, None)


def _scale(column: ColumnFacts | None, tensor: TensorFacts) -> tuple[Any, Any]:
    """Mean and deviation: of each feature over the training rows where they are vectors, else of all values."""
    if column and column.feature_means and tensor.shape[1:] == (len(column.feature_means),):
        if column.maximum is not None and abs(column.maximum) >= abs(tensor.maximum or 0.0) * 0.99:
            deviations = np.asarray(column.feature_deviations)
            return np.asarray(column.feature_means), np.where(deviations > 0, deviations, 1.0)
    return tensor.mean or 0.0, tensor.deviation or 1.0


def _rescale(key: str, scale: tuple[Any, Any], does: str) -> Repair:
    def change(call: Call) -> Call:
        return call.replace(**{key: _scaled(call[key], scale, call.tensors)}) if key in call.given else call

    return Repair(does, Seam.BATCH, change)


def _kept(key: str, scale: tuple[Any, Any], does: str) -> Repair:
    def change(batch: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
        return {**batch, key: _scaled(batch[key], scale, tensors)} if key in batch else batch

    return change_batches(does, change)


def _scaled(tensor: Any, scale: tuple[Any, Any], tensors: Tensors) -> Any:
    values = (tensors.to_numpy(tensor) - scale[0]) / scale[1]
    integers = "int" in str(tensor.dtype)  # that the model makes floats of
    return tensors.like(values, tensor, "float32" if integers else None)
