"""A Trainer's own evaluation and metric function, on a few batches, watched."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from trainwright.adapters.data import length
from trainwright.core.finding import Failure
from trainwright.core.repair import Call, Repair, Seam
from trainwright.seams.place import failure_of
from trainwright.stages.evaluation import EvaluationFacts
from trainwright.stages.tensor import TensorFacts
from trainwright.tensors import torch as tensors


class _Metrics:
    """The user's metric function, with what it was given and what it raised kept."""

    def __init__(self, function: Any, repairs: Sequence[Repair]) -> None:
        self.function = function
        self.repairs = [r for r in repairs if r.seam == Seam.METRICS]
        self.failure: Failure | None = None
        self.predictions: Any = None
        self.labels: Any = None
        self.on_classes: Mapping[str, float] | str = {}

    def __call__(self, given: Any, *args: Any, **kwargs: Any) -> Any:
        call = Call(seam=Seam.METRICS, given={"predictions": given.predictions, "labels": given.label_ids},
                    tensors=tensors)  # fmt: skip
        for repair in self.repairs:
            call = repair.change(call)
        self.predictions, self.labels = call["predictions"], call["labels"]
        changed = _like(given, call["predictions"], call["labels"])
        self.on_classes = self._on_classes(given)
        try:
            return self.function(changed, *args, **kwargs)
        except Exception as error:  # the user's function raised: that is what we came to see
            self.failure = failure_of(error)
            return {}

    def _on_classes(self, given: Any) -> Mapping[str, float] | str:
        """What the function returns for the index of the largest score."""
        scores = self.predictions[0] if isinstance(self.predictions, tuple) else self.predictions
        if not isinstance(scores, np.ndarray) or scores.ndim < 2 or scores.shape[-1] < 2:
            return {}
        try:
            return _numbers(self.function(_like(given, scores.argmax(-1), self.labels)))
        except Exception as error:  # then largest scores are not what it wants
            return f"{type(error).__name__}: {error}"


def _like(given: Any, predictions: Any, labels: Any) -> Any:
    return type(given)(predictions=predictions, label_ids=labels, inputs=getattr(given, "inputs", None))


def _numbers(metrics: Any) -> dict[str, float]:
    return {str(k): float(v) for k, v in dict(metrics or {}).items() if isinstance(v, (int, float, np.number))}


def measure(trainer: Any, data: Any, batches: int, repairs: Sequence[Repair]) -> EvaluationFacts:
    """Evaluate on a few batches of evenly spaced rows, before any training.

    Args:
        trainer: a copy that may be written to.
        data: one evaluation set, or None.
    """
    args = trainer.args
    planned = str(getattr(args.eval_strategy, "value", args.eval_strategy)) != "no"
    best = args.metric_for_best_model if args.load_best_model_at_end else None
    base: dict[str, Any] = {
        "planned": planned,
        "has_metrics": trainer.compute_metrics is not None,
        "label_keys": tuple(trainer.label_names),
        "best_metric": best,
        "best_greater": args.greater_is_better if best else None,
    }
    if data is None:
        return EvaluationFacts(present=False, **base)
    user_metrics = trainer.compute_metrics
    metrics = _Metrics(user_metrics, repairs)
    if user_metrics is not None:
        trainer.compute_metrics = metrics
    few = _few(data, batches * args.eval_batch_size)
    modes: list[bool] = []
    failure, result = None, {}
    try:
        with _watching_mode(trainer.model, modes):
            result = trainer.evaluate(eval_dataset=few)
    except Exception as error:  # the user's pipeline raised: that is what we came to see
        failure = failure_of(error)
    finally:
        trainer.compute_metrics = user_metrics
    seen = metrics.predictions if isinstance(metrics.predictions, tuple) else (metrics.predictions,)
    labels = metrics.labels if isinstance(metrics.labels, np.ndarray) else None
    distinct = np.unique(labels) if labels is not None else np.empty(0)
    return EvaluationFacts(
        failure=failure,
        metrics_failure=metrics.failure,
        predictions=tuple(_array_facts(p) for p in seen if isinstance(p, np.ndarray)),
        labels=_array_facts(labels) if labels is not None else None,
        label_values=tuple(float(x) for x in distinct) if distinct.size <= 32 else (),
        metrics=_numbers(result),
        metrics_on_classes=metrics.on_classes,
        training_mode=any(modes),
        repeatable=_repeatable(trainer, few) if failure is None else None,
        batch_keys=_batch_keys(trainer, few),
        predicted=_predicted(seen[0], labels),
        **base,
    )


def _few(data: Any, rows: int) -> Any:
    """Evenly spaced rows of a data set, or the first ones of an iterable."""
    total = length(data)
    if total is None:
        return _First(data, rows)
    chosen = sorted({int(i) for i in np.linspace(0, total - 1, min(rows, total))}) if total else []
    return data.select(chosen) if hasattr(data, "select") else torch.utils.data.Subset(data, chosen)


class _First(torch.utils.data.IterableDataset):  # type: ignore[misc, type-arg]
    """The first items of an iterable data set."""

    def __init__(self, data: Any, rows: int) -> None:
        self.data, self.rows = data, rows

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(iter(self.data), self.rows)


@contextlib.contextmanager
def _watching_mode(model: Any, modes: list[bool]) -> Iterator[None]:
    hook = model.register_forward_pre_hook(lambda module, args: modes.append(module.training))
    try:
        yield
    finally:
        hook.remove()


def _array_facts(array: np.ndarray) -> TensorFacts:
    if array.dtype == object:
        return TensorFacts(shape=array.shape, dtype="object")
    return tensors.facts(torch.as_tensor(array))


def _repeatable(trainer: Any, few: Any) -> bool | None:
    with contextlib.suppress(Exception):  # an evaluation that has gone through once has been seen
        batch = next(iter(trainer.get_eval_dataloader(few)))
        pair = [trainer.prediction_step(trainer.model, dict(batch), False)[1] for _ in range(2)]
        left, right = (p[0] if isinstance(p, tuple) else p for p in pair)
        return bool(torch.equal(left, right))
    return None


def _batch_keys(trainer: Any, few: Any) -> tuple[str, ...]:
    with contextlib.suppress(Exception):  # a loader that raises has been seen in the batch stage
        return tuple(next(iter(trainer.get_eval_dataloader(few))).keys())
    return ()


def _predicted(scores: Any, labels: np.ndarray | None) -> dict[int, int]:
    if not isinstance(scores, np.ndarray) or scores.ndim != 2 or labels is None or labels.ndim != 1:
        return {}
    if scores.dtype == object or scores.shape[1] < 2:
        return {}
    values, counts = np.unique(scores.argmax(-1), return_counts=True)
    return {int(v): int(n) for v, n in zip(values, counts)}
