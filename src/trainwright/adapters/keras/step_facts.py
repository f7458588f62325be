"""One observed step of a Keras model and further probes, as facts of three stages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trainwright.adapters.keras import setup
from trainwright.adapters.keras.backend import number
from trainwright.adapters.keras.calls import as_tensors, catching, first_array, is_own
from trainwright.adapters.keras.evaluation import loss_call
from trainwright.adapters.keras.forward_probes import probes_of
from trainwright.adapters.keras.gradients import further_steps, gradient_facts, rebuilt_layers
from trainwright.adapters.keras.input.one_batch import FitBatch
from trainwright.adapters.keras.memory import measure_memory
from trainwright.adapters.keras.training import FitTraining
from trainwright.core import Place, Stage
from trainwright.probes import losses
from trainwright.probes.forward import units_equal
from trainwright.probes.losses import crosses_rows, is_of_all_pairs
from trainwright.seams.devices.memory_owners import is_out_of_memory
from trainwright.seams.failures.blame import note_own, tolerated
from trainwright.seams.keras.loss import kind_of, losses_of_rows
from trainwright.seams.keras.step_record import StepRecord
from trainwright.seams.source.written import configured_labels
from trainwright.stages import (
    CrossedTargets,
    ForwardFacts,
    GradientFacts,
    LossFacts,
    MemoryFacts,
    PairedLoss,
    ParameterFacts,
)
from trainwright.stages.forward import STEP_LENGTH, STEPS_UNTIL_DIFFERENT
from trainwright.tensors.keras import objects as tensors
from trainwright.tensors.keras.which_keras import keras, version

# Maximum number of rows to try in all pairs.
MOST_ROWS = 4

StepFacts = tuple[ForwardFacts, LossFacts | None, GradientFacts | None]


def measure_step(fit: FitTraining) -> StepFacts:
    """Take one observed step without an update, then the further ones; stages after one that raised are None."""
    batches = fit.take(2, seed=0)
    fit.reset()
    with fit.ready(0):
        record = _observed(fit, batches[0])
        memory = _memory(fit, batches[0]) if is_out_of_memory(record.error) else None
        loss = loss_facts(fit, record, batches[0])
        if loss is not None and loss.failure is None:
            loss = replace(loss, evaluation_call=loss_call(fit, batches[0]))
        gradients = gradient_facts(fit, record)
        fit.reset()
        forward = replace(forward_facts(fit, record, batches), memory=memory)
        if gradients is not None:
            forward = replace(forward, parameters=stay_identical(forward.parameters, fit, batches[0]))
            fit.reset()
            gradients = further_steps(fit, gradients, batches)
    fit.reset()
    return forward, loss, gradients


def _memory(fit: FitTraining, batch: FitBatch) -> MemoryFacts | None:
    try:
        return measure_memory(fit, batch)
    except Exception as error:  # a smaller batch fails for another reason: keep the original failure
        note_own(error)
        return None


def _observed(fit: FitTraining, batch: FitBatch) -> StepRecord:
    """The step's record: layers and losses observed eagerly, then the gradients of the same step."""
    if fit.own_step:
        return fit.step_gradients(batch, fit.observer(detail=True))
    observer = fit.observer(detail=True)
    record = observer.record
    with observer, catching(record):
        record.loss = number(fit.compute(fit.tensors_of(batch), observer))
    if record.failure is not None:
        return record
    fit.unlisted = [v for layer in record.unlisted for v in layer.trainable_variables]
    fit.reset()
    second = fit.step_gradients(batch, fit.observer(detail=False))
    record.gradients, record.trained = second.gradients, second.trained
    record.failure, record.failed_stage, record.error = second.failure, second.failed_stage, second.error
    if second.loss is not None:
        record.loss = second.loss
    return record


def forward_facts(fit: FitTraining, record: StepRecord, batches: Sequence[FitBatch]) -> ForwardFacts:
    """The facts of the forward pass from the observed step and the probes."""
    failed = record.failure if record.failed_stage == Stage.FORWARD else None
    output = first_array(record.output)
    scores = scores_of(record, output)
    dense = [m for m in record.modules if m.kind == "Dense"]
    answers = failed is None and record.output is not None and not fit.own_step
    targets = tensors.to_numpy(record.kept_losses[-1].targets) if record.kept_losses else None
    again = fit.look_at(batches[0])[0] if record.unlisted else record
    inactive = _inactive(fit, record)
    return ForwardFacts(
        failure=failed,
        failed_module=record.failed_module if failed is not None else None,
        modules=tuple(record.modules),
        parameters=tuple(parameter_facts(fit)),
        rebuilt=tuple(rebuilt_layers(record, again)),
        output=tensors.array_facts(scores, requires_grad=True) if scores is not None else None,
        head=dense[-1] if dense else None,
        configured_labels=configured_labels(fit.model),
        training=record.modes is None or record.modes.training,
        eval_modules=tuple(inactive),
        mode_by_call=True,
        called_at=next(iter(inactive.values()), None),
        non_finite_from=record.non_finite_from,
        **(probes_of(fit, batches, targets) if answers else {}),
    )


def _inactive(fit: FitTraining, record: StepRecord) -> dict[str, Place | None]:
    """Training-only layers called in evaluation mode inside trained blocks, with the line of the call."""
    pairs = zip(record.trained, record.gradients or [])
    trained = {id(v) for v, gradient in pairs if gradient is not None}
    layers, found = tensors.named_layers(fit.model), {}
    for name, at in record.modes.inactive.items() if record.modes is not None else ():
        around = next(tensors.layers_around(layers, name.rpartition(".")[0]))
        if any(id(v) in trained for v in around.trainable_variables) and not _has_statistics(layers[name]):
            found[name] = at
    return found


def _has_statistics(layer: Any) -> bool:
    """Whether a layer has batch statistics from earlier training, which may be frozen on purpose."""
    mean, variance = getattr(layer, "moving_mean", None), getattr(layer, "moving_variance", None)
    if mean is None or variance is None:
        return False
    return bool(tensors.value_of(mean).any()) or bool((tensors.value_of(variance) != 1).any())


def scores_of(record: StepRecord, output: np.ndarray | None) -> np.ndarray | None:
    """The scores that the loss was given, otherwise the model's first output."""
    return tensors.to_numpy(record.kept_losses[-1].scores) if record.kept_losses else output


def parameter_facts(fit: FitTraining) -> list[ParameterFacts]:
    """Facts about every weight, as it stands."""
    trained = {id(v) for v in fit.model.trainable_variables}
    layers, found = tensors.named_layers(fit.model), []
    for name, (path, variable) in tensors.named_variables(fit.model).items():
        values = tensors.value_of(variable)
        facts = tensors.array_facts(values, dtype=str(variable.dtype))
        layer = layers[path]
        found.append(
            ParameterFacts(
                name=name,
                shape=facts.shape,
                trainable=id(variable) in trained,
                dtype=facts.dtype,
                mean=facts.mean or 0.0,
                deviation=facts.deviation or 0.0,
                non_finite=facts.non_finite,
                identical_rows=values.ndim > 1 and values.shape[-1] > 1 and units_equal(values, -1),
                unit_axis=-1,
                module=path,
                module_kind=type(layer).__name__,
                freshly_initialised=None if fit.seen.is_as_drawn(variable) else False,
                default_deviation=_default_deviation(layer, name, facts.shape),
                frozen_at=None if id(variable) in trained else _frozen_at(fit, layers, path),
                initial_deviation=None if id(variable) in trained else _drawn_deviation(layer, variable),
            )
        )
    return found


def _default_deviation(layer: Any, name: str, shape: tuple[int, ...]) -> float | None:
    """Keras's default: Glorot uniform for dense and convolution layers, uniform in +-0.05 for embeddings."""
    if isinstance(layer, keras.layers.Embedding):
        return 0.05 / math.sqrt(3)
    layers = keras.layers
    plain = isinstance(layer, (layers.Dense, layers.Conv1D, layers.Conv2D, layers.Conv3D))
    if plain and name.endswith("kernel") and len(shape) >= 2:
        receptive = math.prod(shape[:-2])
        return math.sqrt(2 / (receptive * (shape[-2] + shape[-1])))
    return None


def _drawn_deviation(layer: Any, variable: Any) -> float | None:
    """The standard deviation that the layer's initializer draws; None if it does not draw from a known seed."""
    initializer: Any = getattr(layer, f"{version().name_of(variable)}_initializer", None)
    if len(variable.shape) < 2 or not isinstance(getattr(initializer, "seed", None), int):
        return None
    return float(tensors.to_numpy(initializer(tuple(variable.shape))).std())


def _frozen_at(fit: FitTraining, layers: Mapping[str, Any], path: str) -> Any:
    frozen = fit.seen.frozen_layers
    return next((frozen[la] for la in tensors.layers_around(layers, path) if la in frozen), None)


def loss_facts(fit: FitTraining, record: StepRecord, batch: FitBatch) -> LossFacts | None:
    """The facts of the loss from the observed step; None if it was not reached."""
    if record.failed_stage == Stage.FORWARD:
        return None
    library = setup.library_name(fit.scope)
    weights = [] if fit.own_step else version().loss_weights(fit.model)
    factors = weights if len(weights) == len(record.loss_calls) else [None] * len(record.loss_calls)
    calls = tuple(replace(c, library=library, factor=f) for c, f in zip(record.loss_calls, factors))
    call = losses.main_call(calls)
    kept = record.kept_losses[calls.index(call)] if call else None
    rows = losses_of_rows(kept, fit.run_loss) if kept is not None and record.failed_stage != Stage.GRADIENTS else None
    place = call.at if call else None
    outputs = tensors.output_names(fit.model, record.output)
    return LossFacts(
        failure=record.failure if record.failed_stage == Stage.LOSS else None,
        **losses.common_facts(calls, -1),
        value=record.loss,
        at=place or fit.loss_place(None),
        row_losses=tuple(float(x) for x in rows) if rows is not None else (),
        row_labels=losses.row_labels(len(rows), tensors.to_numpy(kept.targets))
        if kept is not None and rows is not None
        else (),
        computed_by_nothing=not calls and _computes_no_loss(fit),
        crossed=crossed_targets(fit, record, batch),
        paired=None if fit.own_step else paired_loss(fit, record, batch),
        targets_are_labels=True,
        ignored_label=None,
        outputs=outputs,
        outputs_named=tensors.outputs_named(fit.model, batch.y, outputs),
        outputs_keyed=isinstance(record.output, dict),
    )


def _computes_no_loss(fit: FitTraining) -> bool:
    model = fit.model
    by_class = fit.own_step or is_own(model, "compute_loss") or version().has_library_step(model)
    return getattr(model, "loss", None) is None and not by_class and not model.losses


def stay_identical(
    parameters: Sequence[ParameterFacts], fit: FitTraining, batch: FitBatch
) -> tuple[ParameterFacts, ...]:
    """The facts, with whether equal units stay equal over some steps; the weights are left as the steps made them."""
    suspects = {p.name for p in parameters if p.identical_rows and p.trainable}
    if not suspects:
        return tuple(parameters)
    reached: set[int] = set()
    for _ in range(STEPS_UNTIL_DIFFERENT):
        record = fit.step_gradients(batch, fit.observer(detail=False))
        pairs = zip(record.trained, record.gradients or ())
        moved = [(v, tensors.to_numpy(g)) for v, g in pairs if g is not None]
        reached |= {id(v) for v, _ in moved}
        norm = float(np.sqrt(sum(np.square(g, dtype=np.float64).sum() for _, g in moved))) or 1.0
        for variable, gradient in moved:  # one step length for all, so that a gradient of rounding noise stays small
            variable.assign(tensors.value_of(variable) - (STEP_LENGTH / norm * gradient).astype(gradient.dtype))
    variables = {name: v for name, (_, v) in tensors.named_variables(fit.model).items()}
    return tuple(
        replace(p, identical_after_steps=units_equal(tensors.value_of(variables[p.name]), -1))
        if p.name in suspects and id(variables[p.name]) in reached
        else p
        for p in parameters
    )


def crossed_targets(fit: FitTraining, record: StepRecord, batch: FitBatch) -> CrossedTargets | None:
    """The loss with the rows' targets permuted, with a vector reshaped to a column, and with both.

    None if one of Keras's losses was called, which aligns the two, or if the loss does not cross rows.
    """
    targets = batch.y
    by_hand = fit.own_step or is_own(fit.model, "compute_loss")
    if not by_hand or record.loss_calls or record.failure is not None or not isinstance(targets, np.ndarray):
        return None
    if targets.ndim == 0 or targets.size != len(targets) or targets.ndim > 2 or len(targets) < 2:
        return None
    aligned = targets[:, None] if targets.ndim == 1 else targets[:, 0]
    tried = (targets, np.flip(targets, 0).copy(), aligned, np.flip(aligned, 0).copy())
    with tolerated():  # a step that cannot be repeated tells nothing
        now, exchanged, in_shape, in_shape_exchanged = (fit.loss_of(replace(batch, y=y)) for y in tried)
        if crosses_rows(now, exchanged, in_shape, in_shape_exchanged):
            return CrossedTargets(
                shape=targets.shape,
                aligned_shape=aligned.shape,
                value=now,
                exchanged_value=exchanged,
                aligned_value=in_shape,
            )
    return None


def paired_loss(fit: FitTraining, record: StepRecord, batch: FitBatch) -> PairedLoss | None:
    """The values of the only loss given to compile on a few rows: together, in all pairs, and one by one.

    None if it is one of Keras's, if rows have several targets or outputs, or if it does not cross rows. The outputs are
    built from the targets of other rows, so that each pair of an output and a target has its own loss.
    """
    losses, y = tensors.losses_of(fit.model), batch.y
    output = first_array(record.output)
    if record.loss_calls or record.failure is not None or len(losses) != 1 or kind_of(losses[0]) is not None:
        return None
    if not isinstance(y, np.ndarray) or y.ndim == 0 or y.size != len(y) or output is None or output.size != len(y):
        return None
    values, rows = np.unique(y.reshape(len(y)), return_index=True)
    if len(values) < 2 or y.dtype.kind not in "iuf":
        return None
    y = y[rows[:MOST_ROWS]]
    mixed = y.mean() + (np.roll(y, 1, axis=0) - y.mean()) / 2
    scores = mixed.astype(np.float32).reshape(len(y), *output.shape[1:])

    def loss(targets: np.ndarray, outputs: np.ndarray) -> float:
        return float(tensors.to_numpy(losses[0](as_tensors(targets), as_tensors(outputs))))

    try:
        together = loss(y, scores)
        pairs = np.array([[loss(t[None], o[None]) for t in y] for o in scores])
    except Exception as error:  # a loss that raises is reported with the step
        note_own(error)
        return None
    if not is_of_all_pairs(together, pairs):
        return None
    return PairedLoss(rows=len(y), value=together, by_row=float(pairs.diagonal().mean()))
