"""A Keras model's own metrics on a few validation batches, before training, and what they keep when they are reset."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from trainwright.adapters.keras.backend import number
from trainwright.adapters.keras.calls import as_tensors, catching
from trainwright.adapters.keras.custom_step import packed
from trainwright.adapters.keras.input.nested_values import leaves
from trainwright.adapters.keras.input.one_batch import FitBatch
from trainwright.adapters.keras.training import FitTraining
from trainwright.core import Call, Failure, Seam
from trainwright.core.finding import Place
from trainwright.core.guess import Guess
from trainwright.probes.losses import is_one_hot
from trainwright.probes.metrics import guessed, others
from trainwright.seams.failures.repair_log import mended
from trainwright.seams.keras.step_record import StepRecord
from trainwright.seams.source.places import is_users, show
from trainwright.stages import EvaluationFacts, LossCall, SubstitutePredictions, TensorFacts
from trainwright.stages.evaluation import Counter
from trainwright.tensors.keras import objects as tensors


def measure(fit: FitTraining, batches: int) -> EvaluationFacts:
    """Evaluate on the first batches, twice, and check how the metrics respond to these and to other predictions.

    Without validation data, the metrics are those of the training batches, as fit shows them.
    """
    held = fit.data.validation
    if fit.own_step:
        return _by_own_step(fit, batches)
    if held is None and not _has_metrics(fit):
        return EvaluationFacts(present=False, planned=False)
    prefix, source = ("val_", held) if held is not None else ("", fit.data)
    taken = [fit.repaired(b) for b in itertools.islice(source.elements(), batches)]
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
    again = fit.look_at(taken[0])[0]
    _, alone = _metrics(fit, taken[0], outputs[0], fresh=True)
    return EvaluationFacts(
        planned=held is not None,
        metrics_failure=failure,
        predictions=tuple(tensors.facts(t) for t in first),
        labels=_facts(labels),
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
        repeatable=_same(outputs[0], again.output),
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
            logs = fit.model.test_step(packed(fit.tensors_of(fit.repaired(batch))))
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
    return guessed(scores, labels, ask)


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
        repairs = [r for r in fit.active.all if r.seam == Seam.METRICS]
        if repairs and y is not None and tensors.is_tensor(output):
            call = Call(
                seam=Seam.METRICS,
                given={"predictions": tensors.to_numpy(output), "labels": tensors.to_numpy(y)},
                tensors=tensors,
            )
            for repair in repairs:
                call = mended(repair, call)
            y, output = as_tensors(call["labels"]), as_tensors(call["predictions"])
        answer = fit.model.compute_metrics(x, y, output, sample_weight=weight)
        named = {k: number(v) for k, v in answer.items() if k != "loss" and not isinstance(v, dict)}
        return None, {k: v for k, v in named.items() if v is not None}
    return record.failure, {}


def _facts(labels: Any) -> TensorFacts | None:
    return tensors.facts(labels) if isinstance(labels, np.ndarray) else None


def _values(labels: Any) -> tuple[float, ...]:
    if not isinstance(labels, np.ndarray) or labels.dtype.kind not in "iufb" or labels.size > 100_000:
        return ()
    distinct = np.unique(labels)
    return tuple(float(v) for v in distinct) if len(distinct) <= 32 else ()


def _continuous(labels: Any) -> bool:
    if not isinstance(labels, np.ndarray) or labels.dtype.kind != "f":
        return False
    return bool((labels[np.isfinite(labels)] % 1 != 0).any())


def _same(first: Any, second: Any) -> bool | None:
    if first is None or second is None:
        return None
    pairs = zip(tensors.leaves(first), tensors.leaves(second))
    return all(np.allclose(tensors.to_numpy(a), tensors.to_numpy(b), atol=1e-6, equal_nan=True) for a, b in pairs)


def counters(model: Any, update: Callable[[], object]) -> Iterator[Counter]:
    """The variables of the user's metrics after one update, and after a reset and the same update again.

    Args:
        update: passes the same batch to the model's metrics.
    """
    model.reset_metrics()
    owners = [m for m in _compiled_metrics(model) if _own_place(m) is not None]
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


def _compiled_metrics(model: Any) -> list[Any]:
    """The metrics given to compile; none if Keras stores them otherwise."""
    return list(getattr(getattr(model, "_compile_metrics", None), "metrics", ()))


def _own_place(metric: Any) -> Place | None:
    """Where the user's class defines its reset, otherwise its update; None for Keras's own."""
    for method in (type(metric).reset_state, type(metric).update_state):
        code = getattr(method, "__code__", None)
        if code is not None and is_users(code.co_filename):
            return Place(show(code.co_filename), code.co_firstlineno)
    return None


def _sums(metrics: list[Any]) -> dict[int, float]:
    return {id(v): float(np.sum(tensors.value_of(v))) for m in metrics for v in m.variables}
