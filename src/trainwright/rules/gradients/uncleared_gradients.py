"""TW501 uncleared-gradients: the gradients of earlier steps are still there at the next step.

Why it matters: Every step follows the sum of all batches so far, so the updates grow and are dominated by stale
gradients.
Evidence: Two steps are taken as in training. Subtracting the second batch's own gradient from the second step's
gradient leaves the first batch's gradient, and the script did not ask for accumulation.
Fix (unsafe): Clear the gradients after each update.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.stages import GradientFacts, SetupFacts

# The ratio is 0 for a cleared gradient and 1 for an uncleared one; rounding and random layers stay far from 0.5.
LEFT_OVER = 0.5
_CLEARED = {True: "no line clears the gradients", False: "despite the call that should clear the gradients"}


@rule("TW501", Severity.ERROR)
def uncleared_gradients(gradients: GradientFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A second step whose gradient contains the first step's gradient."""
    left = gradients.leftover_ratio
    if left is None or left < LEFT_OVER:
        return
    never = setup.call == "training loop" and setup.place(Role.ZERO_GRAD) is None
    yield Finding(
        message=f"{_CLEARED[never]}: {left:.0%} of the first batch's gradient is still in that of the second",
        measured={"leftover_ratio": round(left, 4), "accumulation": gradients.accumulation},
        where=setup.place(
            Role.ZERO_GRAD, Role.TRAINING_STEP, Role.BACKWARD, Role.TRAIN_STEP, Role.OPTIMIZER, Role.TRAINER
        ),
        proof=Proof(f"gradient of step 2 minus that of its batch alone = {left:.3f} x gradient of step 1"),
        repair=Repair("clear the gradients before each step", Seam.FORWARD, _clear)
        if gradients.accumulation == 1
        else None,
        fix=Fix(does="call zero_grad() once per update", safety=Safety.UNSAFE),
    )


def _clear(call: Call) -> Call:
    call.tensors.clear_gradients(call["model"])
    return call
