"""The gradients of one observed step of a Keras model, and of further steps; layers whose weights it does not track."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trainwright.adapters.keras.input.one_batch import FitBatch
from trainwright.adapters.keras.state import seed_everything
from trainwright.adapters.keras.training import FitTraining
from trainwright.core import Stage
from trainwright.probes.gradients import dot, share_added, total_norm
from trainwright.seams.keras.step_record import StepRecord
from trainwright.seams.source.places import is_users
from trainwright.seams.source.written import attribute_place
from trainwright.stages import CutOff, GradientFacts, GradientOf, PlainList, RebuiltLayer
from trainwright.tensors.keras import objects as tensors

# Loss scales at which float16 can hold the gradients: at the usual 32,768, those of a large loss are infinite.
_SCALES = (64.0, 128.0)


def gradient_facts(fit: FitTraining, record: StepRecord) -> GradientFacts | None:
    """The gradient of each weight; None if gradients were not reached."""
    if record.failed_stage in (Stage.FORWARD, Stage.LOSS):
        return None
    unlisted = {id(v) for v in fit.unlisted}
    arrived = [(v, _copied(g)) for v, g in zip(record.trained, record.gradients or [None] * len(record.trained))]
    if _stopped_in_steps(fit, record, arrived):
        arrived = [(v, None) for v, _ in arrived]
    found = _gradients(fit, record, [(v, g) for v, g in arrived if id(v) not in unlisted])
    strayed = any(g is not None and g.any() for v, g in arrived if id(v) in unlisted)
    norms = [g.norm for g in found if g.norm is not None]
    optimizer = fit.model.optimizer
    lost = tuple(g.name for g in found if g.norm is None)
    return GradientFacts(
        failure=record.failure if record.failed_stage == Stage.GRADIENTS else None,
        gradients=tuple(found),
        norm=total_norm(norms),
        clip_at=getattr(optimizer, "global_clipnorm", None) or getattr(optimizer, "clipnorm", None),
        loss_finite=record.loss is None or math.isfinite(record.loss),
        loss_requires_grad=bool(norms) or not found,
        accumulation=fit.window,
        backwards=(None,),
        plain_lists=tuple(unlisted_layers(fit.model, record.unlisted)) if strayed else (),
        cuts=tuple(_cuts(record, lost, nothing=not norms)),
    )


def _stopped_in_steps(fit: FitTraining, record: StepRecord, arrived: Sequence[tuple[Any, np.ndarray | None]]) -> bool:
    """Whether JAX's all-zero gradients come from a step function, for which other backends give no gradient."""
    zero = all(g is None or not g.any() for _, g in arrived)
    return fit.backend.name == "jax" and bool(record.discrete) and zero


def _cuts(record: StepRecord, lost: tuple[str, ...], *, nothing: bool) -> Iterator[CutOff]:
    """The likely reasons why weights got no gradient.

    Args:
        nothing: no weight got any, so a step function may lie between the weights and the loss.
    """
    yield from (CutOff(operation="stop_gradient()", where=where, upstream=lost) for where in record.cuts)
    if nothing:
        yield from (CutOff(operation=name, where=where, upstream=lost) for name, where in record.discrete)


def _copied(gradient: Any) -> np.ndarray | None:
    """A copy of a gradient's values, because torch adds the next step's to the same memory."""
    return np.array(tensors.to_numpy(gradient)) if gradient is not None else None


def _gradients(
    fit: FitTraining, record: StepRecord, arrived: Sequence[tuple[Any, np.ndarray | None]]
) -> list[GradientOf]:
    """The gradient of each weight that the model tracks."""
    names = {id(v): (n, p) for n, (p, v) in tensors.named_variables(fit.model).items()}
    layers, found = tensors.named_layers(fit.model), []
    for variable, values in arrived:
        name, path = names.get(id(variable), (variable.name, ""))
        # JAX gives zeros where others give none; an observed cut shows whether it is the graph or a dead unit.
        if fit.backend.name == "jax" and record.cuts and values is not None and not values.any():
            values = None
        found.append(
            GradientOf(
                name=name,
                module=path,
                shape=tuple(variable.shape),
                norm=None if values is None else math.sqrt(dot(values, values)),
                non_finite=0 if values is None else int((~np.isfinite(values)).sum()),
                where=fit.seen.modules.get(layers.get(path)) if path in layers else None,
            )
        )
    return found


def further_steps(fit: FitTraining, facts: GradientFacts, batches: Sequence[FitBatch]) -> GradientFacts:
    """The facts with the results of further steps; no weight is updated.

    Args:
        batches: the first batches; at least one.
    """
    if facts.failure is not None:
        return facts
    if fit.own_step and facts.norm:
        leftover, (scale, follows) = _leftover(fit, batches[0], batches[-1]), _loss_scaling(fit, batches[0])
        facts = replace(facts, leftover_ratio=leftover, loss_scale=scale, follows_loss_scale=follows)
        if scale and follows is not None and follows > 0.5:
            facts = _without_loss_scale(facts, scale)
        fit.reset()
    return facts


def _leftover(fit: FitTraining, first: FitBatch, second: FitBatch) -> float | None:
    """How much of the first batch's gradient remains in the second step's if gradients are not cleared in between.

    None on backends other than torch, which alone accumulates gradients; also if a step raises, or passes no gradient
    to any optimizer, as a step that accumulates them does.
    """
    if fit.backend.name != "torch":
        return None
    seconds = []
    for cleared in (True, False):
        fit.reset()
        before = _step(fit, first, 12, True)
        seconds.append(_step(fit, second, 11, cleared))
    alone, after = seconds
    return share_added(alone, after, before)


def _loss_scaling(fit: FitTraining, batch: FitBatch) -> tuple[float | None, float | None]:
    """The initial loss scale, and the relative growth of the gradients when another one is doubled."""
    scale = getattr(fit.model.optimizer, "dynamic_scale", None)
    if scale is None:
        return None, None
    fit.reset()
    at_start, steps = float(tensors.value_of(scale)), []
    for value in _SCALES:
        fit.reset()
        scale.assign(value)
        steps.append(_step(fit, batch, 11, True))
    one, doubled = steps
    if not one or not doubled:
        return at_start, None
    return at_start, share_added(one, doubled, one)


def _without_loss_scale(facts: GradientFacts, scale: float) -> GradientFacts:
    """The facts with the gradients as they are after the optimizer's unscaling."""
    gradients = tuple(replace(g, norm=None if g.norm is None else g.norm / scale) for g in facts.gradients)
    return replace(facts, gradients=gradients, norm=None if facts.norm is None else facts.norm / scale)


def _step(fit: FitTraining, batch: FitBatch, seed: int, cleared: bool) -> dict[int, np.ndarray]:
    """The gradients that a step passes to its optimizers, by variable; none if it raises.

    Args:
        cleared: first drop what torch keeps from the step before.
    """
    if cleared:
        tensors.clear_gradients(fit.model)
    seed_everything(fit.model, seed)
    record = fit.step_gradients(batch, fit.observer(detail=False))
    if record.failure is not None:
        return {}
    pairs = zip(record.trained, map(_copied, record.gradients or []))
    return {id(v): gradient for v, gradient in pairs if gradient is not None}


def unlisted_layers(model: Any, called: Sequence[Any]) -> Iterator[PlainList]:
    """The attributes of the model or its layers that hold the untracked layers.

    Args:
        called: the layers.
    """
    left = list(called)
    for path, owner in tensors.named_layers(model).items():
        for attribute, value in list(vars(owner).items()):
            below = [la for la in tensors.layers_below(value) if any(la is one for one in left)]
            if not below or attribute.startswith("_"):
                continue
            left = [one for one in left if not any(one is la for la in below)]
            file = getattr(sys.modules.get(type(owner).__module__), "__file__", None)
            yield PlainList(
                name=f"{path}.{attribute}" if path else attribute,
                kind=type(value).__name__,
                modules=len(below),
                parameters=sum(int(np.prod(v.shape)) for la in below for v in la.weights),
                where=attribute_place(file, type(owner).__name__, attribute) if file and is_users(file) else None,
            )


def rebuilt_layers(first: StepRecord, again: StepRecord) -> Iterator[RebuiltLayer]:
    """The layers of one pass over a batch that another pass replaced with others of the same type."""
    others = [(type(la), at) for la, at in zip(again.unlisted, again.unlisted_at)]
    for layer, at in zip(first.unlisted, first.unlisted_at):
        if (type(layer), at) in others and not any(layer is la for la in again.unlisted):
            yield RebuiltLayer(
                kind=type(layer).__name__, parameters=sum(int(np.prod(v.shape)) for v in layer.weights), where=at
            )
