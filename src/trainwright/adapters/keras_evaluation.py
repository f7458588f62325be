"""A Keras model's own metrics on a few batches of its validation data, before training."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np

from trainwright.adapters.keras_backend import number
from trainwright.adapters.keras_twin import Twin, catching
from trainwright.core.finding import Failure
from trainwright.seams.keras import StepRecord
from trainwright.stages.evaluation import EvaluationFacts
from trainwright.stages.tensor import TensorFacts
from trainwright.tensors import keras as tensors


def measure(twin: Twin, batches: int) -> EvaluationFacts:
    """Evaluate on the first batches, twice, and look at what the metrics were given and gave."""
    held = twin.data.validation
    if held is None:
        return EvaluationFacts(present=False, planned=False)
    taken = [twin.repaired(b) for b in itertools.islice(held.elements(), batches)]
    model, losses, metrics_failure = twin.model, [], None
    outputs: list[Any] = []
    record = StepRecord()
    model.reset_metrics()
    metrics: dict[str, Any] = {}
    for batch in taken:
        record, loss = twin.look_at(batch)
        if record.failure is not None:
            break
        losses.append(loss)
        outputs.append(record.output)
        metrics_failure, metrics = _metrics(twin, batch, record.output)
        if metrics_failure is not None:
            break
    if record.failure is not None or not taken:
        return EvaluationFacts(failure=record.failure, rows=held.length, batches=len(taken))
    again = twin.look_at(taken[0])[0]
    labels = taken[0].y
    shown = {f"val_{k}": float(v) for k, v in metrics.items() if isinstance(v, (int, float))}
    first = [t for t in tensors.leaves(outputs[0]) if tensors.is_tensor(t)]
    return EvaluationFacts(
        metrics_failure=metrics_failure,
        predictions=tuple(tensors.facts(t) for t in first),
        labels=_facts(labels),
        label_values=_values(labels),
        metrics={"val_loss": float(np.mean([x for x in losses if x is not None] or [np.nan])), **shown},
        returned=shown,
        has_metrics=bool(shown),
        continuous_labels=_continuous(labels),
        rows=held.length,
        repeatable=_same(outputs[0], again.output),
        batches=len(taken),
        predicted=_predicted(first),
    )


def _metrics(twin: Twin, batch: Any, output: Any) -> tuple[Failure | None, dict[str, Any]]:
    """What the user's metrics make of a batch."""
    record = StepRecord()
    x, y, weight = twin.tensors_of(batch)
    with catching(record):
        answer = twin.model.compute_metrics(x, y, output, sample_weight=weight)
        return None, {k: number(v) for k, v in answer.items() if k != "loss"}
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


def _predicted(outputs: list[Any]) -> dict[int, int]:
    scores = tensors.to_numpy(outputs[0]) if len(outputs) == 1 else np.zeros(0)
    if scores.ndim != 2 or scores.shape[1] < 2:
        return {}
    return dict(Counter(int(c) for c in scores.argmax(1)))


