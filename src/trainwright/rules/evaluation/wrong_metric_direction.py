"""TW715 wrong-metric-direction: a metric is minimized although a greater value is better, or the reverse.

Why it matters: The worst checkpoint is kept as the best, or training stops while the model is still improving.
Evidence: Whether perfect predictions raise or lower the metric, or what its name says, compared with greater_is_better
or the mode of EarlyStopping, ModelCheckpoint or ReduceLROnPlateau. In a loop: a comparison with the best value that can
never be true: it asks for more than inf, or for an accuracy below 0.
Fix (safe): Set the metric's direction.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Role, Safety, Severity, rule
from trainwright.rules.best_metric import (
    best_metric,
    edit_of_arguments,
    edit_of_callback,
    greater_is_better,
    is_measured,
    is_unlogged,
    proof_of_direction,
    right_direction,
    set_arguments,
)
from trainwright.stages import EvaluationFacts, SetupFacts, Watcher


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
        fix=Fix(
            does=f"write greater_is_better={right}",
            safety=Safety.SAFE,
            edits=edit_of_arguments(place, "greater_is_better", str(right), setup.words.arguments),
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
        fix=Fix(
            does=f'write mode="{mode}"',
            safety=Safety.SAFE,
            edits=edit_of_callback(watcher, "mode", mode, watcher.mode_position),
        ),
    )
