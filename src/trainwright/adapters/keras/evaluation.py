"""A Keras model's own metrics on a few validation batches, before training, what they keep when they are reset, and which of
them fit's callbacks watch."""

from __future__ import annotations

import copy
import inspect
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from trainwright.adapters.keras.backend import number
from trainwright.adapters.keras.calls import as_tensors, callbacks_of, catching
from trainwright.adapters.keras.custom_step import pack_step
from trainwright.adapters.keras.input.nested_values import leaves
from trainwright.adapters.keras.input.one_batch import FitBatch
from trainwright.adapters.keras.later_predictions import reshuffled_predictions
from trainwright.adapters.keras.training import FitTraining
from trainwright.core import Failure, Place
from trainwright.core.guess import Guess
from trainwright.probes.losses import is_one_hot
from trainwright.probes.metrics import others, score_guesses
from trainwright.seams.failures.blame import failure_of
from trainwright.seams.keras.step_record import StepRecord
from trainwright.seams.source.places import definition_place
from trainwright.stages import Counter, EvaluationFacts, LossCall, SubstitutePredictions, Watcher
from trainwright.tensors.keras import objects as tensors
from trainwright.tensors.keras.which_keras import keras, version

_PURPOSES = {"EarlyStopping": "stop the training", "ReduceLROnPlateau": "lower the rate"}
# Differs by more than any minimum change set for a callback.
_FAR = 1e9


def measure(fit: FitTraining, batches: int) -> EvaluationFacts:
    """What the metrics, the callbacks that watch them and later predictions show, before training."""
    fit.reset()
    with fit.ready(0):
        facts = _measure_metrics(fit, batches)
        facts = replace(facts, **_measure_callbacks(fit), reshuffled=reshuffled_predictions(fit.frame))
    fit.reset()
    return facts


def _measure_metrics(fit: FitTraining, batches: int) -> EvaluationFacts:
    """Evaluate on the first batches, twice, and check how the metrics respond to these and to other predictions.

    Without validation data, the metrics are those of the training batches, as fit shows them.
    """
    held = fit.data.validation
    if fit.own_step:
        return _by_own_step(fit, batches)
    if held is None and not _has_metrics(fit):
        return EvaluationFacts(present=False, planned=False)
    prefix, source = ("val_", held) if held is not None else ("", fit.data)
    taken = list(itertools.islice(source.elements(), batches))
    losses: list[float] = []
    outputs: list[Any] = []
    metrics: dict[str, float] = {}
    failure = None
    fit.model.reset_metrics()
    for batch in taken:
        record, loss = fit.look_at(batch)
        if record.failure is not None:
            return EvaluationFacts(failure=record.failure, rows=source.length, batches=len(taken))
        losses += [loss] if loss is not None else []
        outputs.append(record.output)
        failure, metrics = _metrics(fit, batch, record.output, fresh=False)
        if failure is not None:
            break
    if not outputs:
        return EvaluationFacts(rows=source.length)
    labels, first = taken[0].y, [t for t in tensors.leaves(outputs[0]) if tensors.is_tensor(t)]
    _, alone = _metrics(fit, taken[0], outputs[0], fresh=True)
    return EvaluationFacts(
        planned=held is not None,
        metrics_failure=failure,
        predictions=tuple(tensors.facts(t) for t in first),
        labels=tensors.facts(labels) if isinstance(labels, np.ndarray) else None,
        label_values=_values(labels),
        metrics={
            f"{prefix}loss": float(np.mean(losses or [np.nan])),
            **{f"{prefix}{k}": v for k, v in metrics.items()},
        },
        returned=alone,
        metrics_when=_when(fit, taken[0], first) if alone or failure is not None else {},
        guesses=_guesses(fit, taken[0], first) if alone else {},
        metrics_by="the metric given to compile",
        continuous_labels=_continuous(labels),
        rows=source.length,
        batches=len(taken),
        counters=tuple(counters(fit.model, lambda: _metrics(fit, taken[0], outputs[0], fresh=False))),
    )


def loss_call(fit: FitTraining, trained: FitBatch) -> LossCall | None:
    """How the first validation batch enters the loss, if its targets differ in form from the training targets."""
    held = fit.data.validation
    if held is None or fit.own_step:
        return None
    batch: FitBatch | None = None
    with catching(StepRecord()):  # data that raise are reported by the batch stage
        batch = next(iter(held.pool(1)), None)
    if batch is None or _forms(batch) == _forms(trained):
        return None
    observer = fit.observer(detail=True)
    with observer, catching(observer.record):
        fit.compute(fit.tensors_of(batch), observer, training=False)
    return next(iter(observer.record.loss_calls), None)


def _forms(batch: FitBatch) -> list[tuple[int, ...]]:
    return [np.shape(a)[1:] for a in leaves(batch.y)]


def _by_own_step(fit: FitTraining, batches: int) -> EvaluationFacts:
    """The model's own test_step on some batches; its return values are the metrics."""
    held, record = fit.data.validation, StepRecord()
    if held is None or fit.backend.name == "jax":
        return EvaluationFacts(present=False, planned=held is not None)
    logs: Any = {}
    fit.model.reset_metrics()
    with fit.observer(detail=False, training=False), catching(record):
        for batch in itertools.islice(held.elements(), batches):
            logs = fit.model.test_step(pack_step(fit.tensors_of(batch)))
    values = {k: number(v) for k, v in logs.items() if not isinstance(v, dict)} if isinstance(logs, dict) else {}
    return EvaluationFacts(
        failure=record.failure,
        metrics={f"val_{k}": v for k, v in values.items() if v is not None},
        rows=held.length,
        batches=batches,
    )


def _has_metrics(fit: FitTraining) -> bool:
    """Whether the script passed metrics to compile."""
    given = fit.compiled.given if fit.compiled else {}
    return bool(given.get("metrics") or given.get("weighted_metrics"))


def _when(fit: FitTraining, batch: Any, outputs: list[Any]) -> dict[SubstitutePredictions, dict[str, float] | str]:
    """The metrics for altered inputs to them, for a model with one output and one array of targets."""
    if len(outputs) != 1 or not isinstance(batch.y, np.ndarray):
        return {}
    found: dict[SubstitutePredictions, dict[str, float] | str] = {}
    for given, predictions in others(tensors.to_numpy(outputs[0]), batch.y).items():
        failure, values = _metrics(fit, batch, as_tensors(predictions), fresh=True)
        found[given] = str(failure) if failure is not None else values
    return found


def _guesses(fit: FitTraining, batch: Any, outputs: list[Any]) -> dict[str, Guess]:
    """What guessing gives, for a model with one output and one array of targets of its rows."""
    if len(outputs) != 1 or not isinstance(batch.y, np.ndarray):
        return {}

    def ask(predictions: Any) -> dict[str, float]:
        return _metrics(fit, batch, as_tensors(predictions), fresh=True)[1]

    scores, labels = tensors.to_numpy(outputs[0]), batch.y
    if labels.ndim == scores.ndim > 1 and labels.shape[-1] == 1 < scores.shape[-1]:
        labels = labels[..., 0]
    elif is_one_hot(scores, labels):
        labels = labels.argmax(-1)
    if scores.ndim > labels.ndim and bool((labels == labels.round()).all()):
        labels = labels.astype(np.int64)  # Keras accepts class indices of any dtype
    return score_guesses(scores, labels, ask)


def _metrics(fit: FitTraining, batch: Any, output: Any, *, fresh: bool) -> tuple[Failure | None, dict[str, float]]:
    """The user's metrics for a batch.

    Args:
        fresh: for this batch alone.
    """
    record = StepRecord()
    x, y, weight = fit.tensors_of(batch)
    with catching(record):
        if fresh:
            fit.model.reset_metrics()
        answer = fit.model.compute_metrics(x, y, output, sample_weight=weight)
        named = {k: number(v) for k, v in answer.items() if k != "loss" and not isinstance(v, dict)}
        return None, {k: v for k, v in named.items() if v is not None}
    return record.failure, {}


def _values(labels: Any) -> tuple[float, ...]:
    if not isinstance(labels, np.ndarray) or labels.dtype.kind not in "iufb" or labels.size > 100_000:
        return ()
    distinct = np.unique(labels)
    return tuple(float(v) for v in distinct) if len(distinct) <= 32 else ()


def _continuous(labels: Any) -> bool:
    if not isinstance(labels, np.ndarray) or labels.dtype.kind != "f":
        return False
    return bool((labels[np.isfinite(labels)] % 1 != 0).any())


def counters(model: Any, update: Callable[[], object]) -> Iterator[Counter]:
    """The variables of the user's metrics after one update, and after a reset and the same update again.

    Args:
        update: passes the same batch to the model's metrics.
    """
    model.reset_metrics()
    compiled = getattr(getattr(model, "_compile_metrics", None), "metrics", ())  # Keras may store them otherwise
    owners = [m for m in compiled if _own_place(m) is not None]
    start = _sums(owners)
    update()
    once = _sums(owners)
    model.reset_metrics()
    update()
    twice = _sums(owners)
    model.reset_metrics()
    for metric in owners:
        for variable in metric.variables:
            key = id(variable)
            yield Counter(
                name=f"{metric.name}.{variable.name}",
                start=start.get(key, 0.0),
                once=once.get(key, 0.0),
                twice=twice.get(key, 0.0),
                added_at=_own_place(metric),
                set_back_by="reset_state",
            )


def _own_place(metric: Any) -> Place | None:
    """Where the user's class defines its reset, otherwise its update; None for Keras's own."""
    return definition_place(type(metric).reset_state) or definition_place(type(metric).update_state)


def _sums(metrics: list[Any]) -> dict[int, float]:
    return {id(v): float(np.sum(tensors.value_of(v))) for m in metrics for v in m.variables}


def _measure_callbacks(fit: FitTraining) -> dict[str, Any]:
    """The metrics that the callbacks watch and the available ones, as fields of the evaluation's facts."""
    watching = [c for c in callbacks_of(fit.given) if _watches(c)]
    if not watching or not fit.logged_names:
        return {}
    return {"watchers": tuple(_watcher(c, fit) for c in watching), "logged": fit.logged_names}


def _watches(callback: Any) -> bool:
    """Whether one of Keras's own callbacks acts on a metric."""
    return (
        type(callback).__module__.partition(".")[0] == version().package
        and isinstance(getattr(callback, "monitor", None), str)
        and hasattr(callback, "monitor_op")
        and getattr(callback, "save_best_only", True)
    )


def _watcher(callback: Any, fit: FitTraining) -> Watcher:
    kind, built = type(callback).__name__, fit.seen.callbacks.get(callback)
    greater, failure = _direction(callback, fit.model)
    purpose = "keep the best weights" if hasattr(callback, "save_best_only") else _PURPOSES.get(kind, "act")
    path = str(getattr(callback, "filepath", ""))
    taken = list(inspect.signature(type(callback)).parameters)
    return Watcher(
        kind=kind,
        purpose=purpose,
        metric=callback.monitor,
        position=taken.index("monitor"),
        in_file_name=re.search(f"{{{re.escape(callback.monitor)}[:}}]", path) is not None,
        mode_position=taken.index("mode") if "mode" in taken else None,
        greater=greater,
        usual=_usual_direction(callback, fit.model),
        failure=failure,
        where=built.place if built is not None else None,
    )


def _usual_direction(callback: Any, model: Any) -> bool | None:
    """Whether Keras treats a greater value of the metric as better, also for one of several outputs."""
    if not hasattr(callback, "_set_monitor_op"):  # tf_keras guesses it from the metric's name
        return None
    name = callback.monitor.removeprefix("val_")
    of_output = [name.removeprefix(f"{o}_") for o in getattr(model, "output_names", None) or ()]
    asked = (_direction(callback, model, mode="auto", monitor=n, monitor_op=None)[0] for n in (name, *of_output))
    return next((greater for greater in asked if greater is not None), None)


def _direction(callback: Any, model: Any, **settings: Any) -> tuple[bool | None, Failure | None]:
    """Whether a callback treats a greater value as better, and what it raises when it decides that."""
    copied = copy.copy(callback)
    vars(copied).update(settings)
    if copied.monitor_op is None:  # it is decided at the end of the first epoch
        copied.set_model(model)
        try:
            copied._set_monitor_op()
        except Exception as error:  # a metric whose direction Keras does not know
            return None, failure_of(error)
    return bool(tensors.to_numpy(keras.ops.convert_to_tensor(copied.monitor_op(_FAR, 0.0)))), None
