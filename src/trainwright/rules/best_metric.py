"""Helpers for rules about the best checkpoint's metric and about callbacks that monitor a metric."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trainwright.core import Call, Place, Proof, Repair, Seam, SetKeyword
from trainwright.rules.metrics import equal, greater_by_name
from trainwright.stages import EvaluationFacts, Given, Watcher

# Scores are shares, or percentages.
_MOST_PERCENT = 100.0
_TIMES = ("runtime", "samples_per_second", "steps_per_second", "model_preparation_time", "epoch")


@dataclass(frozen=True)
class BestMetric:
    """The metric that selects the best checkpoint, under the evaluation's name for it."""

    name: str
    bare: str
    """The name without that of an evaluation set."""
    known: list[str]
    """The names that the evaluation returns."""
    is_returned: bool


def best_metric(evaluation: EvaluationFacts) -> BestMetric | None:
    """The metric, if one is set and the evaluation succeeded."""
    if not is_measured(evaluation) or evaluation.best_metric is None or evaluation.needs_all_rows:
        return None
    if not evaluation.metrics or not evaluation.planned:
        return None
    name = evaluation.best_metric.removeprefix("eval_")
    names = [n for n in (m.removeprefix("eval_") for m in evaluation.metrics) if n not in _TIMES]
    of_set = next((s for s in evaluation.set_names if name.startswith(f"{s}_")), None)
    bare = name.removeprefix(f"{of_set}_") if of_set else name
    known = [f"{s}_{n}" for s in evaluation.set_names or ("",) for n in names]
    return BestMetric(
        name=name,
        bare=bare,
        known=[n.lstrip("_") for n in known],
        is_returned=bare in names and bool(evaluation.set_names) == (of_set is not None),
    )


def is_measured(evaluation: EvaluationFacts) -> bool:
    """Whether the evaluation succeeded."""
    return not (evaluation.failure or evaluation.metrics_failure)


def is_unlogged(watcher: Watcher, evaluation: EvaluationFacts) -> bool:
    """Whether the metric that a callback monitors is missing from those logged in an epoch."""
    return bool(evaluation.logged) and watcher.metric not in evaluation.logged


def right_direction(watcher: Watcher, evaluation: EvaluationFacts) -> bool | None:
    """Whether a greater value of a callback's metric is better; None if unknown."""
    measured = greater_is_better(watcher.metric.removeprefix("val_"), evaluation)
    if measured is None:
        measured = watcher.usual
    return _by_name(watcher) if measured is None else measured


def _by_name(watcher: Watcher) -> bool | None:
    """What a metric's name says of its direction, unless its value is one that such a metric does not have."""
    greater = greater_by_name(watcher.metric)
    if watcher.value is not None and not 0 <= watcher.value <= (_MOST_PERCENT if greater else math.inf):
        return None  # a negated loss, or a score of its own kind
    return greater


def greater_is_better(name: str, evaluation: EvaluationFacts) -> bool | None:
    """Whether perfect predictions raise the metric; None if unknown."""
    if name == "loss":
        return False
    given = evaluation.when(Given.PERFECT) or evaluation.when(Given.PERFECT_ALIGNED)
    perfect, now = given.get(name), evaluation.returned.get(name)
    if perfect is None or now is None or not math.isfinite(perfect) or not math.isfinite(now) or equal(perfect, now):
        return None
    return perfect > now


def proof_of_direction(name: str, right: bool, evaluation: EvaluationFacts, usual: bool | None = None) -> Proof:
    """The evidence for whether a greater value of a metric is better.

    Args:
        usual: whether the framework treats a greater value as better; None: it does not know the metric.
    """
    given = evaluation.when(Given.PERFECT) or evaluation.when(Given.PERFECT_ALIGNED)
    if name not in given or name not in evaluation.returned:
        if name.endswith("loss"):
            return Proof("a loss is better when it is smaller")
        if usual is None and greater_by_name(name) == right:
            return Proof(f"{name} is better when it is {'greater' if right else 'smaller'}, as its name says")
        return Proof(f"the framework treats a {'greater' if right else 'smaller'} {name} as better")
    now, perfect = evaluation.returned[name], given[name]
    return Proof(f"{name} is {now:.4g} now, and would be {perfect:.4g} for perfect predictions")


def edit_of_callback(watcher: Watcher, name: str, value: str, position: int | None) -> tuple[SetKeyword, ...]:
    """The edit that sets an argument of the callback's constructor."""
    at = watcher.where
    return (SetKeyword(at.file, at.line, name, f'"{value}"', watcher.kind, position),) if at is not None else ()


def edit_of_arguments(place: Place | None, name: str, value: str, function: str) -> tuple[SetKeyword, ...]:
    """The edit that sets a hyperparameter in a function call."""
    return (SetKeyword(place.file, place.line, name, value, function),) if place else ()


def set_arguments(**values: object) -> Repair:
    """Set hyperparameters in the arguments already in force."""

    def change(call: Call) -> Call:
        for name, value in values.items():
            object.__setattr__(call["arguments"], name, value)
        return call

    return Repair("set " + ", ".join(f"{k}={v!r}" for k, v in values.items()), Seam.TRAINER, change)
