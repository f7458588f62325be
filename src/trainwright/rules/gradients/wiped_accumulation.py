"""TW508 wiped-accumulation: the gradients are cleared before the update they belong to.

Why it matters: Inside an accumulation window, each update uses only the last micro-batch; between backward and the
optimizer's step, nothing is learned at all.
Evidence: One accumulation window is run as in training, and the accumulated gradient is that of the last micro-batch
alone. Or: backward gave the parameters gradients, and at the optimizer's step they are gone.
Fix (safe): Clear the gradients once per update, before its backward passes or after its step.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.stages import GradientFacts, SetupFacts


@rule("TW508", Severity.ERROR)
def wiped_accumulation(gradients: GradientFacts, setup: SetupFacts) -> Iterator[Finding]:
    """An accumulation window with only the last micro-batch's gradient left, or an update with no gradient left."""
    if gradients.wiped:
        yield _before_step(gradients, setup)
    elif gradients.wiped_passes:
        yield _within_step(gradients, setup)
    if gradients.wiped or gradients.wiped_passes or not gradients.only_last:
        return
    count, planned = gradients.accumulated_batches, gradients.accumulation
    yield Finding(
        message=f"of {count} micro-batches only the last one's gradient is left at the update; "
        f"it should hold those of all {planned}",
        measured={"micro_batches": count, "accumulation": planned},
        where=setup.place(
            Role.CLEAR_CALL, Role.TRAINING_STEP, Role.COMPUTE_LOSS, Role.GRADIENT_ACCUMULATION_STEPS, Role.TRAINER
        ),
        proof=Proof(
            f"the accumulated gradient equals micro-batch {count}'s within 0.1%, and differs from micro-batch 1's"
        ),
        fix=Fix(does="clear the gradients once per update, after it, not once per micro-batch", safety=Safety.SAFE),
    )


def _before_step(gradients: GradientFacts, setup: SetupFacts) -> Finding:
    count = len(gradients.wiped)
    return Finding(
        message=f"the gradients of {count} parameters are cleared between backward and the optimizer's step, so the step updates nothing",
        measured={"cleared": count, "trainable": len(gradients.gradients)},
        where=gradients.wiped_at or setup.place(Role.OPTIMIZER_STEP, Role.BACKWARD, Role.TRAINER),
        proof=Proof(f"after backward, {count} parameters have a gradient; at the step, none of them has one"),
        fix=Fix(does="clear the gradients before backward, or after the step", safety=Safety.SAFE),
    )


def _within_step(gradients: GradientFacts, setup: SetupFacts) -> Finding:
    """A step that runs several backward passes and clears the gradients each time."""
    count = gradients.wiped_passes
    return Finding(
        message=f"of {count} backward passes only the last one's gradient is left at the update: the others are cleared",
        measured={"backward_passes": count},
        where=gradients.wiped_at or setup.place(Role.CLEAR_CALL, Role.BACKWARD, Role.TRAINER),
        proof=Proof(
            f"before the optimizer's step, the same line runs backward {count} times, and the gradients are cleared in between"
        ),
        fix=Fix(does="clear the gradients once per update, before its first backward pass", safety=Safety.SAFE),
    )
