"""TW710 unknown-best-metric: the best checkpoint or early stopping depends on a metric that is never computed.

Why it matters: The run stops at its first save or epoch, keeps an arbitrary checkpoint as the best, or never stops
early.
Evidence: The metrics that the evaluation returned, or that a training step and an evaluation step log, compared with
the metric that metric_for_best_model, EarlyStopping, ModelCheckpoint or ReduceLROnPlateau monitors.
Error: `The `metric_for_best_model` training argument is set to '…', which is not found in the evaluation metrics`
Error: `Early stopping conditioned on metric `…` which is not available`
Error: `Can save best model only with … available`
Error: `Learning rate reduction is conditioned on metric `…` which is not available`
Fix (unsafe): Name a metric that is computed, with its direction.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from trainwright.core import Fate, Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.rules.best_metric import (
    BestMetric,
    best_metric,
    edit_of_arguments,
    edit_of_callback,
    greater_is_better,
    is_measured,
    is_unlogged,
    set_arguments,
)
from trainwright.stages import EvaluationFacts, SetupFacts, Watcher


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
        fix=Fix(
            does=f'write metric_for_best_model="{chosen}", or return {name!r} from compute_metrics',
            safety=Safety.UNSAFE,
            edits=edit_of_arguments(place, "metric_for_best_model", f'"{chosen}"', setup.words.arguments),
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
