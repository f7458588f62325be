"""The first update of a Keras `fit`, by itself behind the run: the optimizer's facts, its schedule run dry, and short runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from trainwright.adapters import short_runs
from trainwright.adapters.base import ShortRun, Train
from trainwright.adapters.keras import setup
from trainwright.adapters.keras.calls import callbacks_of, catching
from trainwright.adapters.keras.input import data_sets
from trainwright.adapters.keras.optimizer import is_rate_given
from trainwright.adapters.keras.schedule import DryRun, dry_run, rate_of_short_runs
from trainwright.adapters.keras.training import FitTraining
from trainwright.seams.listening.seen import BuiltObjects
from trainwright.stages import DatasetFacts, GroupFacts, OptimizerFacts
from trainwright.tensors.keras import objects as tensors
from trainwright.tensors.keras.which_keras import version


def measure_dataset(fit: FitTraining) -> DatasetFacts:
    """Read a sample of the data and count its labels."""
    labels = setup.find_places(fit.model, fit.frame, fit.seen).get("labels_made")
    return data_sets.measure_dataset(fit.data, scope=fit.scope, label_place=labels, step_on=fit.step_on)


def measure_optimizer(fit: FitTraining, planned: int | None) -> OptimizerFacts:
    """The effect of one update, and the schedule over the planned updates."""
    model = fit.model
    fit.rate_of_short_runs = None  # the first update is measured at the optimizer's own rate
    batch = fit.take(1, seed=0)[0]
    fit.reset()
    attribute = next(iter(fit.optimizers()), "optimizer")
    optimizer = getattr(model, attribute)
    is_given = optimizer is None or is_rate_given(optimizer, fit.seen)
    epochs = range(int(fit.given.get("initial_epoch") or 0), int(fit.given.get("epochs") or 1))
    with fit.ready(0):
        schedule = dry_run(optimizer, callbacks_of(fit.given), planned, epochs)
        observer = fit.observer(detail=False)
        with catching(observer.record):
            fit.build_optimizer()
        before = {n: np.array(tensors.value_of(v)) for n, v in _trained(model).items()}
        record = observer.record if observer.record.failure else fit.take_step(batch, 0)
        facts = OptimizerFacts(failure=record.failure, epochs=epochs)
        if optimizer is not None:
            held = fit.held_at_start if attribute == "optimizer" else None
            facts = replace(
                facts,
                **_written_facts(optimizer, fit.seen),
                **_update_facts(getattr(model, attribute), model, before, held),
                **_schedule_facts(schedule),
                rate_given=is_given or schedule.by_callback,
                library=setup.library_name(fit.scope),
                given_gradients=bool(record.gradients) if fit.own_step else None,
                planned_updates=planned,
            )
    fit.reset()
    fit.rate_of_short_runs = rate_of_short_runs(schedule)
    return facts


def train(fit: FitTraining, request: Train) -> ShortRun:
    """Take steps; they take no longer for being compiled, which is done once for any number of steps and runs."""
    before = fit.steps.compiling_seconds
    run = short_runs.train(fit, request)
    return replace(run, seconds=max(run.seconds - (fit.steps.compiling_seconds - before), 1e-3))


def _written_facts(optimizer: Any, seen: BuiltObjects) -> dict[str, Any]:
    """How the script made the optimizer."""
    inner, is_built = getattr(optimizer, "inner_optimizer", optimizer), optimizer in seen.optimizers
    return {
        "user_built": is_built,
        "named_by_string": not is_built,
        "rate_keyword": "learning_rate",
        "rate_position": seen.position_given(inner, "learning_rate") if is_built else None,
    }


def _update_facts(
    optimizer: Any, model: Any, before: Mapping[str, np.ndarray], held: set[Any] | None
) -> dict[str, Any]:
    """What one update changed.

    Args:
        before: the trainable weights before the update, by name.
        held: the variables that the optimizer was built for before fit was called; None if it was not built.
    """
    inner, named = getattr(optimizer, "inner_optimizer", optimizer), _trained(model)
    decay = float(getattr(inner, "weight_decay", None) or 0.0)
    return {
        "kind": type(inner).__name__,
        "groups": (GroupFacts(tensors=len(named), weight_decay=decay, names=tuple(named)),),
        "trainable": tuple(named),
        "held": tuple(n for n, v in named.items() if held is None or version().keys_of(inner, [v]) <= held),
        "bound": True,
        "foreign": len((held or set()) - version().keys_of(inner, model.weights)),
        "changed": {n: _change(before[n], named[n]) for n in named if n in before},
    }


def _schedule_facts(schedule: DryRun) -> dict[str, Any]:
    return {
        "learning_rate": schedule.peak,
        "update_rate": schedule.now,
        "schedule_kind": schedule.kind,
        "schedule_given": bool(schedule.kind),
        "schedule_length": schedule.length,
        "schedule_failure": schedule.failure,
        "schedule": schedule.points,
        "schedule_steps": schedule.steps,
        "schedule_moves_at": schedule.moves_at,
    }


def _trained(model: Any) -> dict[str, Any]:
    """The trainable variables, by name."""
    trained = {id(v) for v in model.trainable_variables}
    return {n: v for n, (_, v) in tensors.named_variables(model).items() if id(v) in trained}


def _change(before: np.ndarray, variable: Any) -> float:
    now = tensors.value_of(variable)
    size = float(np.linalg.norm(before.astype(np.float64)))
    moved = float(np.linalg.norm(now.astype(np.float64) - before))
    return moved / size if size else moved
