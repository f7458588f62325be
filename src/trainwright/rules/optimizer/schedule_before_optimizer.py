"""TW609 schedule-before-optimizer: the schedule is stepped by the script as well, before the optimizer.

Why it matters: the Trainer steps the schedule after each update; a second stepping in the training step skips the
first rate and runs through the schedule twice as fast.
Evidence: the schedule's counter before and after one training step, in which no update was made.
Error: `Detected call of lr_scheduler.step() before optimizer.step()`
Fix (safe): leave the schedule's step to the Trainer.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core.finding import Finding, Proof, Severity
from trainwright.core.fix import Fix, Safety
from trainwright.core.role import Role
from trainwright.core.rule import rule
from trainwright.stages.optimizer import OptimizerFacts
from trainwright.stages.setup import SetupFacts


@rule("TW609", Severity.WARNING)
def schedule_before_optimizer(optimizer: OptimizerFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A training step that moves the schedule on."""
    if not optimizer.schedule_first:
        return
    yield Finding(
        message="the training step moves the schedule on before the optimizer has made its update: "
        "the first rate of the schedule is never used",
        measured={"schedule": optimizer.schedule_kind},
        where=setup.place(Role.SCHEDULE_STEP, Role.TRAINING_STEP, Role.COMPUTE_LOSS, Role.TRAINER),
        proof=Proof(
            "the schedule's counter was higher after a training step than before it, with no update between"
        ),
        fix=Fix(
            does=f"leave the schedule's step() out: {setup.words.trainer} calls it"
            if setup.automatic_steps
            else "call the schedule's step() after the optimizer's",
            safety=Safety.SAFE,
        ),
    )
