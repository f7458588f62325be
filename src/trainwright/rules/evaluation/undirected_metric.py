"""TW716 undirected-metric: a callback monitors a metric without knowing whether a greater value is better.

Why it matters: The callback raises an error at the end of the first epoch.
Evidence: The callback was tried out before training, and raised the error.
Error: `but Keras isn't able to automatically determine whether that metric should be maximized or minimized`
Fix (safe where the direction was measured): Set the callback's mode.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Failure, Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.rules.best_metric import edit_of_callback, is_measured, is_unlogged, right_direction
from trainwright.stages import EvaluationFacts, SetupFacts, Watcher


@rule("TW716", Severity.ERROR, after="TW710")
def undirected_metric(setup: SetupFacts, evaluation: EvaluationFacts) -> Iterator[Finding]:
    """A callback that rejects a metric although it is logged."""
    if not is_measured(evaluation):
        return
    for watcher in evaluation.watchers:
        if watcher.failure is not None and not is_unlogged(watcher, evaluation):
            yield _finding(watcher, watcher.failure, right_direction(watcher, evaluation), setup)


def _finding(watcher: Watcher, failure: Failure, right: bool | None, setup: SetupFacts) -> Finding:
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
