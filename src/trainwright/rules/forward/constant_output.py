"""TW307 constant-output: the model's output does not depend on its input.

Why it matters: The best it can learn is one answer for all inputs.
Evidence: Two batches with different rows give the same output, and still do when every weight is moved a little (a last
layer that starts at zero is not a fault); the call after which there is no difference left.
Fix (manual): Look at that call: it averages, normalizes or overwrites its input.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import ForwardFacts, LossFacts, SetupFacts

DEEP = 6  # sigmoid or tanh layers one behind another
WHOLLY_DEAD = 0.99  # share of a rectifier's units that no row of the batch reaches


@rule("TW307", Severity.ERROR, foretells=Fate.LEARNS_NOTHING)
def constant_output(forward: ForwardFacts, setup: SetupFacts, loss: LossFacts | None) -> Iterator[Finding]:
    """The same output for different inputs, whatever the weights."""
    if loss is None or loss.failure is not None:
        return  # what raised comes first
    if not forward.same_for_other_inputs or not forward.same_when_perturbed:
        return
    if forward.drowned_in_frozen:
        return  # frozen-untrained-layers names that
    if any((m.dead_share or 0.0) > WHOLLY_DEAD for m in forward.modules):
        return  # dead-units names that
    if sum(m.kind in ("Sigmoid", "Tanh") for m in forward.modules) >= DEEP:
        return  # each takes four fifths of a difference or more: vanishing-gradients names that
    origin, output = forward.constant_from, forward.output
    after = f" after {origin.operation}" if origin else ""
    shape = f" {output.shape}" if output else ""
    yield Finding(
        message=f"two batches of different inputs give the same output{shape}: there is no difference{after}",
        measured={"operation": origin.operation if origin else "", "relative_difference": 0.0},
        where=(origin.where if origin else None) or setup.place(Role.MODEL),
        proof=Proof(
            "the outputs agree to 1e-6 of their scale, both with the original weights and with every weight moved"
        ),
        fix=Fix(does=f"fix the call of {origin.operation}" if origin else "make the output depend on the input"),
    )
