"""A Trainer's own evaluation and metric function, behind its training: observed once more, on a few batches."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from trainwright.core import Failure, Place
from trainwright.core.guess import Guess
from trainwright.probes.metrics import as_many, numbers, others, score_guesses, undone
from trainwright.probes.splits.values import evenly
from trainwright.seams.failures.blame import failure_of, passed_on, tolerated
from trainwright.seams.source.places import show
from trainwright.stages import IGNORED_LABEL, EvaluationFacts, SubstitutePredictions, TensorFacts
from trainwright.tensors.items import length
from trainwright.tensors.torch import objects as tensors

# Batches of an evaluation.
BATCHES = 2


class _Metrics:
    """The user's metric function; records its arguments, results and exceptions."""

    def __init__(self, function: Any, rows: int | None) -> None:
        self.function = function
        self.rows = rows
        self.failure: Failure | None = None
        self.named = True
        self.predictions: Any = None
        self.labels: Any = None
        self.returned: Mapping[str, float] = {}
        self.needs_all_rows = False
        self.when: dict[SubstitutePredictions, Mapping[str, float] | str] = {}
        self.guesses: Mapping[str, Guess] = {}

    def __call__(self, given: Any, *args: Any, **kwargs: Any) -> Any:
        self.predictions, self.labels = given.predictions, given.label_ids
        with undone(self.function):
            answer: Any = {}
            try:
                answer = self.function(_like(given, self.predictions, _copied(self.labels)), *args, **kwargs)
                if not isinstance(answer, Mapping):
                    self.named = False
                    self.failure, answer = _no_mapping(self.function, answer), {}
            except Exception as error:  # the user's function raised, which is a finding
                self.needs_all_rows = self._works_on_all(given)
                self.failure = None if self.needs_all_rows else failure_of(error)
            self.returned = numbers(answer)
            if not self.needs_all_rows:
                self._try_others(given)
                self._guess(given)
        return answer

    def _works_on_all(self, given: Any) -> bool:
        """Whether the function works on as many rows as the whole set: it also reads the set itself."""
        if self.rows is None or not hasattr(self.labels, "__len__") or self.rows <= len(self.labels):
            return False
        with tolerated():  # then the number of rows is not the cause
            self.function(_like(given, as_many(self.predictions, self.rows), as_many(self.labels, self.rows)))
            return True
        return False

    def _guess(self, given: Any) -> None:
        """What guessing gives."""

        def ask(predictions: Any) -> Mapping[str, float]:
            return numbers(passed_on(self.function, _like(given, predictions, _copied(self.labels))))

        if self.failure is None and self.returned:
            self.guesses = score_guesses(self.predictions, self.labels, ask)

    def _try_others(self, given: Any) -> None:
        for name, predictions in others(self.predictions, self.labels).items():
            self.when[name] = self._try(given, predictions, self.labels)
        if self.failure is not None and isinstance(self.labels, np.ndarray) and (self.labels == IGNORED_LABEL).any():
            labels = np.where(self.labels == IGNORED_LABEL, 0, self.labels)
            self.when[SubstitutePredictions.ZERO_FOR_IGNORED] = self._try(given, self.predictions, labels)

    def _try(self, given: Any, predictions: Any, labels: Any) -> Mapping[str, float] | str:
        try:
            return numbers(passed_on(self.function, _like(given, predictions, _copied(labels))))
        except Exception as error:  # then this is not the form it expects
            return f"{type(error).__name__}: {error}"


def _no_mapping(function: Any, answer: Any) -> Failure:
    code = getattr(function, "__code__", None)
    where = Place(show(code.co_filename), code.co_firstlineno) if code else None
    message = f"the Trainer needs a dict of names and numbers; got {type(answer).__name__}"
    return Failure(type="TypeError", message=message, where=where)


def _copied(labels: Any) -> Any:
    """A writable copy of labels: many functions replace -100 in place."""
    return labels.copy() if isinstance(labels, np.ndarray) else labels


def _like(given: Any, predictions: Any, labels: Any) -> Any:
    return type(given)(predictions=predictions, label_ids=labels, inputs=getattr(given, "inputs", None))


def measure(trainer: Any) -> EvaluationFacts:
    """Evaluate on a few batches of evenly spaced rows.

    Args:
        trainer: is evaluated without its callbacks; nothing of what it logs is kept away.
    """
    data = evaluation_set_of(trainer)
    base = _arguments(trainer)
    if data is None:
        return EvaluationFacts(present=False, **base)
    user_metrics = trainer.compute_metrics
    metrics = _Metrics(user_metrics, length(data))
    if user_metrics is not None:
        trainer.compute_metrics = metrics
    few = _few(data, BATCHES * trainer.args.eval_batch_size)
    failure, result = None, {}
    try:
        with _without_callbacks(trainer):
            result = trainer.evaluate(eval_dataset=few)
    except Exception as error:  # the user's pipeline raised, which is a finding
        failure = failure_of(error)
    finally:
        trainer.compute_metrics = user_metrics
    seen = metrics.predictions if isinstance(metrics.predictions, tuple) else (metrics.predictions,)
    labels = metrics.labels if isinstance(metrics.labels, np.ndarray) else None
    distinct = np.unique(labels) if labels is not None else np.empty(0)
    batch = _first_batch(trainer, few)
    lossless = failure is None and not any(k.endswith("loss") for k in result)
    return EvaluationFacts(
        failure=failure,
        metrics_failure=metrics.failure,
        metrics_named=metrics.named,
        predictions=tuple(_array_facts(p) for p in seen if isinstance(p, np.ndarray)),
        labels=_array_facts(labels) if labels is not None else None,
        label_values=tuple(float(x) for x in distinct) if distinct.size <= 32 else (),
        continuous_labels=bool(distinct.dtype.kind == "f" and (distinct % 1 != 0).any()),
        ignored_share=float((labels == IGNORED_LABEL).mean()) if labels is not None and labels.size else 0.0,
        metrics=numbers(result),
        returned=metrics.returned,
        metrics_when=metrics.when,
        guesses=metrics.guesses,
        needs_all_rows=metrics.needs_all_rows,
        rows=length(data),
        set_name=_name_of(data, trainer.eval_dataset),
        batch_keys=tuple(batch),
        loss_keys=_loss_keys(trainer, batch) if lossless else (),
        **base,
    )


def evaluation_set_of(trainer: Any) -> Any:
    """The set that a Trainer evaluates on; of several the first."""
    data = trainer.eval_dataset
    if not isinstance(data, dict):
        return data
    # A part of the training set is often also evaluated, for comparison.
    held = [part for name, part in data.items() if "train" not in str(name)]
    return next(iter(held or data.values()), None)


def _arguments(trainer: Any) -> dict[str, Any]:
    args = trainer.args
    best = args.metric_for_best_model if args.load_best_model_at_end else None
    sets = trainer.eval_dataset
    return {
        "planned": str(getattr(args.eval_strategy, "value", args.eval_strategy)) != "no",
        "label_keys": tuple(trainer.label_names),
        "best_metric": best,
        "best_greater": args.greater_is_better if best else None,
        "set_names": tuple(str(n) for n in sets) if isinstance(sets, dict) else (),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else None,
        "keeps_predictions": trainer.compute_metrics is not None
        and not args.prediction_loss_only
        and not getattr(args, "batch_eval_metrics", False),
    }


def _name_of(data: Any, sets: Any) -> str:
    named = sets.items() if isinstance(sets, dict) else ()
    return next((str(name) for name, part in named if part is data), "")


def _few(data: Any, rows: int) -> Any:
    """Evenly spaced rows of a dataset, or the first ones of an iterable."""
    total = length(data)
    if total is None:
        return _First(data, rows)
    chosen = evenly(range(total), rows)
    return data.select(chosen) if hasattr(data, "select") else torch.utils.data.Subset(data, chosen)


class _First(torch.utils.data.IterableDataset):
    """The first items of an iterable dataset."""

    def __init__(self, data: Any, rows: int) -> None:
        self.data, self.rows = data, rows

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(iter(self.data), self.rows)


def _array_facts(array: np.ndarray) -> TensorFacts:
    if array.dtype == object:
        return TensorFacts(shape=array.shape, dtype="object")
    facts: TensorFacts = tensors.facts(torch.as_tensor(array))
    return facts


def _first_batch(trainer: Any, few: Any) -> Mapping[str, Any]:
    with tolerated():  # a loader that raises was reported by the batch stage
        return dict(next(iter(trainer.get_eval_dataloader(few))))
    return {}


@contextlib.contextmanager
def _without_callbacks(trainer: Any) -> Iterator[None]:
    handler = trainer.callback_handler
    kept, handler.callbacks = handler.callbacks, []
    try:
        yield
    finally:
        handler.callbacks = kept


def _loss_keys(trainer: Any, batch: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys that a model needs to return a loss, if it returns one for the whole batch."""
    if not _gives_loss(trainer, batch):
        return ()
    without = {k: _gives_loss(trainer, {o: v for o, v in batch.items() if o != k}) for k in batch}
    return tuple(k for k, gives in without.items() if gives is False)


def _gives_loss(trainer: Any, batch: Mapping[str, Any]) -> bool | None:
    """Whether the model's output for a batch includes a loss; None if it raised."""
    with tolerated():  # an input that the model needs
        with torch.no_grad():
            answer = trainer.model(**trainer._prepare_inputs(dict(batch)))
        return (answer.get("loss") if isinstance(answer, Mapping) else _scalar(answer)) is not None
    return None


def _scalar(answer: Any) -> Any:
    first = answer[0] if isinstance(answer, (tuple, list)) and answer else None
    return first if isinstance(first, torch.Tensor) and first.numel() == 1 else None
