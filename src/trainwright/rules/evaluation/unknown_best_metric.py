"""TW710 unknown-best-metric: the best checkpoint, or early stopping, uses a metric that nobody computes, or the wrong direction.

Why it matters: the run stops at its first save or epoch, keeps its worst checkpoint as the best, is never stopped early,
or is stopped while it gets better.
Evidence: the metrics that the evaluation returned, or that a training step and an evaluation step log, against what
metric_for_best_model, EarlyStopping, ModelCheckpoint and ReduceLROnPlateau follow; whether perfect predictions raise or
lower the metric.
Error: `load_best_model_at_end requires the save and eval strategy to match`
Error: `load_best_model_at_end requires the saving steps to be a round multiple`
Error: `The `metric_for_best_model` training argument is set to '…', which is not found in the evaluation metrics`
Error: `Early stopping conditioned on metric `…` which is not available`
Error: `Can save best model only with … available`
Error: `Learning rate reduction is conditioned on metric `…` which is not available`
Error: `but Keras isn't able to automatically determine whether that metric should be maximized or minimized`
Fix (safe): name a metric that is computed, with its direction; save when it is evaluated.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Sequence
from typing import Any

from trainwright.core.finding import Finding, Place, Proof, Severity
from trainwright.core.fix import Fix, Safety, SetKeyword
from trainwright.core.repair import Call, Repair, Seam
from trainwright.core.role import Role
from trainwright.core.rule import rule
from trainwright.rules.metrics import equal
from trainwright.stages.evaluation import EvaluationFacts, Given, Watcher
from trainwright.stages.setup import RefusedCall, SetupFacts

_TIMES = ("runtime", "samples_per_second", "steps_per_second", "model_preparation_time", "epoch")
_DEFAULTS = {"eval_strategy": "no", "save_strategy": "steps", "eval_steps": None, "save_steps": 500}


@rule("TW710", Severity.ERROR)
def unknown_best_metric(setup: SetupFacts, evaluation: EvaluationFacts | None) -> Iterator[Finding]:
    """Strategies that do not match, a metric that is not among those returned, or a wrong direction."""
    refused = setup.refused
    if refused is not None and "load_best_model_at_end requires" in refused.failure.message:
        yield _unmatched(refused)
    if evaluation is None or evaluation.failure or evaluation.metrics_failure:
        return
    for watcher in evaluation.watchers:
        yield from _watched(watcher, evaluation, setup)
    if evaluation.best_metric is None or evaluation.needs_all_rows:
        return
    if not evaluation.metrics or not evaluation.planned:
        return
    name = evaluation.best_metric.removeprefix("eval_")
    names = [n for n in (m.removeprefix("eval_") for m in evaluation.metrics) if n not in _TIMES]
    of_set = next((s for s in evaluation.set_names if name.startswith(f"{s}_")), None)
    bare = name.removeprefix(f"{of_set}_") if of_set else name
    if bare not in names or bool(evaluation.set_names) != (of_set is not None):
        known = [f"{s}_{n}" for s in evaluation.set_names or ("",) for n in names]
        yield _unknown(name, [n.lstrip("_") for n in known], evaluation, setup)
        return
    right = greater_is_better(bare, evaluation)
    if right is not None and evaluation.best_greater is not None and right != evaluation.best_greater:
        yield _wrong_way(bare, right, evaluation, setup)


def greater_is_better(name: str, evaluation: EvaluationFacts) -> bool | None:
    """Whether perfect predictions raise the metric; None where that cannot be told."""
    if name == "loss":
        return False
    given = evaluation.when(Given.PERFECT) or evaluation.when(Given.PERFECT_ALIGNED)
    perfect, now = given.get(name), evaluation.returned.get(name)
    if (
        perfect is None
        or now is None
        or not math.isfinite(perfect)
        or not math.isfinite(now)
        or equal(perfect, now)
    ):
        return None
    return perfect > now


def _nearest(name: str, known: Sequence[str]) -> str:
    """The name that was most likely meant."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.3)
    scores = [n for n in known if not n.endswith("loss")]
    return (near or scores or known or ["loss"])[0]


def _unknown(name: str, known: list[str], evaluation: EvaluationFacts, setup: SetupFacts) -> Finding:
    chosen = _nearest(name, known)
    greater = greater_is_better(chosen, evaluation)
    greater = not chosen.endswith("loss") if greater is None else greater
    place = setup.place(Role.METRIC_FOR_BEST_MODEL, Role.LOAD_BEST_MODEL_AT_END, Role.ARGUMENTS)
    return Finding(
        message=f"the best checkpoint is to be chosen by {name!r}, and the evaluation returns {', '.join(known)}",
        measured={"metric_for_best_model": name, "returned": ", ".join(known)},
        where=place,
        proof=Proof("the evaluation was run on rows of the evaluation set, and returned no such metric"),
        repair=_set(Seam.TRAINER, metric_for_best_model=chosen, greater_is_better=greater),
        fix=Fix(
            does=f'write metric_for_best_model="{chosen}", or return {name!r} from compute_metrics',
            safety=Safety.UNSAFE,
            edits=_edits(place, "metric_for_best_model", f'"{chosen}"'),
        ),
    )


def _way(name: str, right: bool, evaluation: EvaluationFacts) -> Proof:
    """What tells whether a greater value of a metric is better."""
    given = evaluation.when(Given.PERFECT) or evaluation.when(Given.PERFECT_ALIGNED)
    if name not in given or name not in evaluation.returned:
        if name.endswith("loss"):
            return Proof("a loss is better when it is smaller")
        return Proof(f"the framework takes a {'greater' if right else 'smaller'} {name} for the better one")
    now, perfect = evaluation.returned[name], given[name]
    return Proof(f"{name} is {now:.4g} now, and would be {perfect:.4g} for perfect predictions")


def _wrong_way(name: str, right: bool, evaluation: EvaluationFacts, setup: SetupFacts) -> Finding:
    place = setup.place(
        Role.GREATER_IS_BETTER, Role.METRIC_FOR_BEST_MODEL, Role.LOAD_BEST_MODEL_AT_END, Role.ARGUMENTS
    )
    return Finding(
        message=f"the checkpoint with the {'smallest' if right else 'greatest'} {name} is kept as the best, and a "
        f"{'greater' if right else 'smaller'} {name} is better",
        measured={"metric_for_best_model": name, "greater_is_better": int(bool(evaluation.best_greater))},
        where=place,
        proof=_way(name, right, evaluation),
        repair=_set(Seam.TRAINER, greater_is_better=right),
        fix=Fix(
            does=f"write greater_is_better={right}",
            safety=Safety.SAFE,
            edits=_edits(place, "greater_is_better", str(right)),
        ),
    )


def _watched(watcher: Watcher, evaluation: EvaluationFacts, setup: SetupFacts) -> Iterator[Finding]:
    """What acts on a metric that is not logged, or takes the worse value for the better."""
    if evaluation.logged and watcher.metric not in evaluation.logged:
        yield _unlogged(watcher, evaluation.logged, setup)
        return
    name = watcher.metric.removeprefix("val_")
    measured = greater_is_better(name, evaluation)
    right = watcher.usual if measured is None else measured
    if watcher.failure is not None:
        yield _undirected(watcher, right, evaluation, setup)
    elif None not in (right, watcher.greater) and right != watcher.greater and watcher.usual in (None, right):
        yield _misdirected(watcher, bool(right), evaluation, setup)


def _unlogged(watcher: Watcher, logged: Sequence[str], setup: SetupFacts) -> Finding:
    bare = watcher.metric.removeprefix("val_")
    chosen = bare if bare in logged else _nearest(watcher.metric, logged)
    unvalidated = watcher.metric.startswith("val_") and not any(n.startswith("val_") for n in logged)
    raised = f"; it raises {watcher.failure.type} at the end of the first epoch" if watcher.failure else ""
    harmful = watcher.failure is not None or watcher.purpose.startswith("keep")
    return Finding(
        message=f"{watcher.kind} is to {watcher.purpose} by {watcher.metric!r}, and an epoch logs {', '.join(logged)}{raised}",
        measured={"monitor": watcher.metric, "logged": ", ".join(logged)},
        severity=Severity.ERROR if harmful else Severity.WARNING,
        where=watcher.where or setup.place(Role.CALLBACKS, Role.TRAIN_CALL),
        proof=Proof(
            f"a training step{'' if unvalidated else ' and an evaluation step'} logged no {watcher.metric!r}"
        ),
        fix=Fix(
            does=("give fit validation data, or " if unvalidated else "")
            + f'write monitor="{chosen}"'
            + (f" and {{{chosen}}} in the file's name" if watcher.in_file_name else ""),
            safety=Safety.MANUAL if watcher.in_file_name else Safety.UNSAFE,
            edits=() if watcher.in_file_name else _argument(watcher, "monitor", chosen, watcher.position),
        ),
    )


def _undirected(
    watcher: Watcher, right: bool | None, evaluation: EvaluationFacts, setup: SetupFacts
) -> Finding:
    assert watcher.failure is not None
    mode = None if right is None else "max" if right else "min"
    return Finding(
        message=f"{watcher.kind} cannot tell whether a greater {watcher.metric} is better: it raises "
        f"{watcher.failure.type} at the end of the first epoch",
        measured={"monitor": watcher.metric, "mode": "auto"},
        where=watcher.where or setup.place(Role.CALLBACKS, Role.TRAIN_CALL),
        proof=Proof(f"it was asked before training: {watcher.failure.message[:160]}"),
        fix=Fix(
            does=f'write mode="{mode}"' if mode else 'write mode="max" or mode="min"',
            safety=Safety.SAFE if mode else Safety.MANUAL,
            edits=_argument(watcher, "mode", mode, watcher.mode_position) if mode else (),
        ),
    )


def _misdirected(watcher: Watcher, right: bool, evaluation: EvaluationFacts, setup: SetupFacts) -> Finding:
    mode = "max" if right else "min"
    return Finding(
        message=f"{watcher.kind} is to {watcher.purpose} by {watcher.metric!r} and takes a "
        f"{'smaller' if right else 'greater'} value for the better one; a {'greater' if right else 'smaller'} one is",
        measured={"monitor": watcher.metric, "takes": "greater" if watcher.greater else "smaller"},
        where=watcher.where or setup.place(Role.CALLBACKS, Role.TRAIN_CALL),
        proof=_way(watcher.metric.removeprefix("val_"), right, evaluation),
        fix=Fix(
            does=f'write mode="{mode}"',
            safety=Safety.SAFE,
            edits=_argument(watcher, "mode", mode, watcher.mode_position),
        ),
    )


def _argument(watcher: Watcher, name: str, value: str, position: int | None) -> tuple[SetKeyword, ...]:
    """The edit of an argument of the callback's constructor."""
    at = watcher.where
    return (
        (SetKeyword(at.file, at.line, name, f'"{value}"', watcher.kind, position),) if at is not None else ()
    )


def _unmatched(refused: RefusedCall) -> Finding:
    given = {**_DEFAULTS, **{k: v for k, v in refused.given.items() if k in _DEFAULTS}}
    if "strategy to match" in refused.failure.message:
        evaluates = given["eval_strategy"] not in ("no", None)
        name, value = (
            ("save_strategy", given["eval_strategy"])
            if evaluates
            else ("eval_strategy", given["save_strategy"])
        )
        if value == "no":
            value = "epoch"
        message = f"load_best_model_at_end is set, and eval_strategy is {given['eval_strategy']!r} while save_strategy is {given['save_strategy']!r}"
    else:
        step, every = given["eval_steps"] or 500, given["save_steps"]
        whole = isinstance(step, (int, float)) and step >= 1 and isinstance(every, (int, float))
        name, value = "save_steps", math.ceil(every / step) * int(step) if whole else step
        message = (
            f"load_best_model_at_end is set, and save_steps is {every}, no multiple of eval_steps {step}"
        )
    places = refused.places
    written = next(
        (
            places[n]
            for n in (name, "eval_strategy", "save_strategy", "load_best_model_at_end")
            if n in places
        ),
        None,
    )
    at = written or refused.failure.where
    return Finding(
        message=message,
        measured={k: v for k, v in given.items() if isinstance(v, (int, float, str))},
        where=at,
        proof=Proof(
            f"{refused.function} raised {refused.failure.type}: a checkpoint is compared when it is evaluated"
        ),
        repair=_set(Seam.CONSTRUCT, **{name: value}) if refused.repairable else None,
        fix=Fix(does=f"write {name}={value!r}", safety=Safety.SAFE, edits=_edits(at, name, repr(value))),
    )


def _edits(place: Place | None, name: str, value: str) -> tuple[SetKeyword, ...]:
    return (SetKeyword(place.file, place.line, name, value, "TrainingArguments"),) if place else ()


def _set(seam: Seam, **values: Any) -> Repair:
    def change(call: Call) -> Call:
        if seam == Seam.CONSTRUCT:
            return call.replace(**values)
        for name, value in values.items():
            object.__setattr__(call["arguments"], name, value)
        return call

    return Repair("set " + ", ".join(f"{k}={v!r}" for k, v in values.items()), seam, change)
