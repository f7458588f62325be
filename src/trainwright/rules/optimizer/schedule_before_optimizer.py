"""TW609 schedule-before-optimizer: the script also steps the schedule, before the optimizer.

Why it matters: The Trainer steps the schedule after each update. A second step in the training step skips the first
rate and runs through the schedule twice as fast.
Evidence: The schedule's counter before and after one training step without an update.
Error: `Detected call of lr_scheduler.step() before optimizer.step()`
Fix (safe): Leave stepping the schedule to the Trainer.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.stages import OptimizerFacts, SetupFacts


@rule("TW609", Severity.WARNING)
def schedule_before_optimizer(optimizer: OptimizerFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A training step that advances the schedule."""
    if not optimizer.schedule_first:
        return
    yield Finding(
        message="the training step advances the schedule before the optimizer has updated the weights: "
        "the first rate of the schedule is never used",
        measured={"schedule": optimizer.schedule_kind},
        where=setup.place(Role.SCHEDULE_STEP, Role.TRAINING_STEP, Role.COMPUTE_LOSS, Role.TRAINER),
        proof=Proof("the schedule's counter was higher after a training step than before it, with no update between"),
        fix=Fix(
            does=f"leave the schedule's step() out: {setup.words.trainer} calls it"
            if setup.automatic_steps
            else "call the schedule's step() after the optimizer's",
            safety=Safety.SAFE,
        ),
    )
