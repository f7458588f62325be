"""The metric of the best checkpoint, and those that callbacks monitor."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainwright.core import (
    Call,
    Failure,
    Fate,
    Finding,
    Fix,
    Proof,
    Repair,
    Role,
    Safety,
    Seam,
    SetKeyword,
    Severity,
    rule,
)
from trainwright.rules.fixes import safe, set_keyword, unsafe
from trainwright.rules.metrics import equal, greater_by_name
from trainwright.stages import EvaluationFacts, SetupFacts, SubstitutePredictions, Watcher


@rule("TW710", Severity.ERROR, foretells=Fate.STOPS)
def unknown_best_metric(setup: SetupFacts, evaluation: EvaluationFacts) -> Iterator[Finding]:
    """A metric that is not among those returned or logged."""
    if not is_measured(evaluation):
        return
    for watcher in evaluation.watchers:
        if is_unlogged(watcher, evaluation):
            yield _unlogged(watcher, evaluation.logged, setup)
    best = best_metric(evaluation)
    if best is not None and not best.is_returned:
        yield _unknown(best, evaluation, setup)


def _unknown(best: BestMetric, evaluation: EvaluationFacts, setup: SetupFacts) -> Finding:
    name, known = best.name, best.known
    chosen = _nearest(name, known)
    greater = greater_is_better(chosen, evaluation)
    greater = not chosen.endswith("loss") if greater is None else greater
    place = setup.place(Role.METRIC_FOR_BEST_MODEL, Role.LOAD_BEST_MODEL_AT_END, Role.ARGUMENTS)
    return Finding(
        message=f"the best checkpoint is selected by {name!r}, but the evaluation returns {', '.join(known)}",
        measured={"metric_for_best_model": name, "returned": ", ".join(known)},
        where=place,
        proof=Proof("the evaluation was run on rows of the evaluation set, and returned no such metric"),
        repair=set_arguments(metric_for_best_model=chosen, greater_is_better=greater),
        fix=unsafe(
            f'write metric_for_best_model="{chosen}", or return {name!r} from compute_metrics',
            set_keyword(place, "metric_for_best_model", f'"{chosen}"', setup.words.arguments),
        ),
    )


def _unlogged(watcher: Watcher, logged: Sequence[str], setup: SetupFacts) -> Finding:
    bare = watcher.metric.removeprefix("val_")
    chosen = bare if bare in logged else _nearest(watcher.metric, logged)
    unvalidated = watcher.metric.startswith("val_") and not any(n.startswith("val_") for n in logged)
    raised = f"; it raises {watcher.failure.type} at the end of the first epoch" if watcher.failure else ""
    is_written = watcher.position is not None and not watcher.in_file_name
    harmful = watcher.failure is not None or watcher.purpose.startswith("keep")
    return Finding(
        message=f"{watcher.kind} monitors {watcher.metric!r} to {watcher.purpose}, but an epoch logs "
        f"{', '.join(logged)}{raised}",
        measured={"monitor": watcher.metric, "logged": ", ".join(logged)},
        severity=Severity.ERROR if harmful else Severity.WARNING,
        where=watcher.where or setup.place(Role.CALLBACKS, Role.TRAIN_CALL),
        proof=Proof(f"a training step{'' if unvalidated else ' and an evaluation step'} logged no {watcher.metric!r}"),
        fix=Fix(
            does=("pass validation data to fit, or " if unvalidated else "")
            + f'write monitor="{chosen}"'
            + (f" and {{{chosen}}} in the file name" if watcher.in_file_name else ""),
            safety=Safety.UNSAFE if is_written else Safety.MANUAL,
            edits=edit_of_callback(watcher, "monitor", chosen, watcher.position) if is_written else (),
        ),
    )


def _nearest(name: str, known: Sequence[str]) -> str:
    """The name that was most likely meant."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.3)
    scores = [n for n in known if not n.endswith("loss")]
    return (near or scores or known or ["loss"])[0]


@rule("TW715", Severity.ERROR, after="TW710")
def wrong_metric_direction(setup: SetupFacts, evaluation: EvaluationFacts) -> Iterator[Finding]:
    """A metric that perfect predictions would move in the opposite direction."""
    if not is_measured(evaluation):
        return
    for watcher in evaluation.watchers:
        right = right_direction(watcher, evaluation)
        if is_unlogged(watcher, evaluation) or watcher.failure is not None or watcher.greater is None:
            continue
        if right is not None and right != watcher.greater and watcher.usual in (None, right):
            yield _of_callback(watcher, right, evaluation, setup)
    best = best_metric(evaluation)
    if best is None or not best.is_returned or evaluation.best_greater is None:
        return
    right = greater_is_better(best.bare, evaluation)
    if right is not None and right != evaluation.best_greater:
        yield _of_checkpoint(best.bare, right, evaluation, setup)


def _of_checkpoint(name: str, right: bool, evaluation: EvaluationFacts, setup: SetupFacts) -> Finding:
    place = setup.place(Role.GREATER_IS_BETTER, Role.METRIC_FOR_BEST_MODEL, Role.LOAD_BEST_MODEL_AT_END, Role.ARGUMENTS)
    return Finding(
        message=f"the checkpoint with the {'smallest' if right else 'greatest'} {name} is kept as the best, but a "
        f"{'greater' if right else 'smaller'} {name} is better",
        measured={"metric_for_best_model": name, "greater_is_better": int(bool(evaluation.best_greater))},
        where=place,
        proof=proof_of_direction(name, right, evaluation),
        repair=set_arguments(greater_is_better=right),
        fix=safe(
            f"write greater_is_better={right}",
            set_keyword(place, "greater_is_better", str(right), setup.words.arguments),
        ),
    )


def _of_callback(watcher: Watcher, right: bool, evaluation: EvaluationFacts, setup: SetupFacts) -> Finding:
    mode = "max" if right else "min"
    return Finding(
        message=f"{watcher.kind} monitors {watcher.metric!r} to {watcher.purpose} and treats "
        f"{'smaller' if right else 'greater'} values as better, but {'greater' if right else 'smaller'} values are",
        measured={"monitor": watcher.metric, "takes": "greater" if watcher.greater else "smaller"},
        where=watcher.where or setup.place(Role.CALLBACKS, Role.TRAIN_CALL),
        proof=proof_of_direction(watcher.metric.removeprefix("val_"), right, evaluation, watcher.usual),
        fix=safe(f'write mode="{mode}"', edit_of_callback(watcher, "mode", mode, watcher.mode_position)),
    )


@rule("TW716", Severity.ERROR, after="TW710")
def undirected_metric(setup: SetupFacts, evaluation: EvaluationFacts) -> Iterator[Finding]:
    """A callback that rejects a metric although it is logged."""
    if not is_measured(evaluation):
        return
    for watcher in evaluation.watchers:
        if watcher.failure is not None and not is_unlogged(watcher, evaluation):
            yield _undirected(watcher, watcher.failure, right_direction(watcher, evaluation), setup)


def _undirected(watcher: Watcher, failure: Failure, right: bool | None, setup: SetupFacts) -> Finding:
    mode = None if right is None else "max" if right else "min"
    return Finding(
        message=f"{watcher.kind} cannot tell whether a greater {watcher.metric} is better: it raises "
        f"{failure.type} at the end of the first epoch",
        measured={"monitor": watcher.metric, "mode": "auto"},
        where=watcher.where or setup.place(Role.CALLBACKS, Role.TRAIN_CALL),
        proof=Proof(f"called before training, it raised: {failure.message[:160]}"),
        fix=Fix(
            does=f'write mode="{mode}"' if mode else 'write mode="max" or mode="min"',
            safety=Safety.SAFE if mode else Safety.MANUAL,
            edits=edit_of_callback(watcher, "mode", mode, watcher.mode_position) if mode else (),
        ),
    )


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
    given = evaluation.when(SubstitutePredictions.PERFECT) or evaluation.when(SubstitutePredictions.PERFECT_ALIGNED)
    perfect, now = given.get(name), evaluation.returned.get(name)
    if perfect is None or now is None or not math.isfinite(perfect) or not math.isfinite(now) or equal(perfect, now):
        return None
    return perfect > now


def proof_of_direction(name: str, right: bool, evaluation: EvaluationFacts, usual: bool | None = None) -> Proof:
    """The evidence for whether a greater value of a metric is better.

    Args:
        usual: whether the framework treats a greater value as better; None: it does not know the metric.
    """
    given = evaluation.when(SubstitutePredictions.PERFECT) or evaluation.when(SubstitutePredictions.PERFECT_ALIGNED)
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
    return set_keyword(watcher.where, name, f'"{value}"', watcher.kind, position)


def set_arguments(**values: object) -> Repair:
    """Set hyperparameters in the arguments already in force."""

    def change(call: Call) -> Call:
        for name, value in values.items():
            object.__setattr__(call["arguments"], name, value)
        return call

    return Repair("set " + ", ".join(f"{k}={v!r}" for k, v in values.items()), Seam.TRAINER, change)
