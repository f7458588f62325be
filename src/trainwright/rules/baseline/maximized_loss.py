"""TW906 maximized-loss: the training raises the loss that it should lower.

Why it matters: No error is raised; each step makes the predictions worse.
Evidence: What the steps minimize falls, and on the same rows the loss function's own value rises above where it began.
Fix (manual): Minimize the loss itself: remove the minus sign, or the division by it.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import LearningFacts, LossFacts, SetupFacts

# The loss of a training that diverges moves up and down; that of one that climbs does so while its opposite falls.
RISEN = 1.5
FALLEN_SHARE = 0.2


@rule("TW906", Severity.WARNING, residual=True)
def maximized_loss(learning: LearningFacts, loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A loss function whose value rises while what is minimized falls."""
    if learning.steps is None or learning.trained is None or learning.terms != 1 or len(learning.looks) < 2:
        return
    (first, last), began, ended = learning.steps, learning.looks[0].loss, learning.trained.loss
    if not began > 0 or ended < RISEN * began or learning.trained.share > 0:
        return
    if first - last < FALLEN_SHARE * abs(first):
        return
    yield Finding(
        message=f"{learning.trained.updates:,} updates lower what they minimize from {first:.4g} to {last:.4g}, and raise the "
        f"{loss.function or 'loss'} of the same rows from {began:.4g} to {ended:.4g}",
        measured={"minimized_first": first, "minimized_last": last, "loss_first": began, "loss_last": ended},
        where=loss.at or setup.place(Role.LOSS, Role.BACKWARD, Role.TRAINER),
        proof=Proof(
            "both were measured in one training from the script's own weights; a constant prediction is better"
        ),
        fix=Fix(does="minimize the loss itself: remove the minus sign in front of it, or the division by it"),
    )
