"""TW413 constant-loss: the loss does not depend on the model's weights.

Why it matters: Nothing can be learned, whatever the learning rate; a loss of exactly 0 looks like a success.
Evidence: No weight gets a gradient, and moving every trained weight leaves the loss unchanged to the last bit.
Fix (manual): Compute the loss from the model's output. For one output and labels of 0 and 1, use a binary loss.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Fate, Finding, Fix, Proof, Repair, Seam, Severity, rule
from trainwright.rules.places import loss_place
from trainwright.stages import LossCall, LossFacts, SetupFacts

# A margin loss is 0 once every row satisfies the margin, and then small changes of the weights do not change it; these
# losses reach 0 only if they depend on nothing.
_NEVER_RESTING = ("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits")


@rule("TW413", Severity.ERROR, foretells=Fate.STANDS_STILL)
def constant_loss(loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A loss that stays the same when all weights change."""
    if not loss.unchanged_by_weights or loss.value is None:
        return
    if loss.value == 0 and loss.function not in _NEVER_RESTING:
        return
    call = loss.call
    one = (
        call is not None
        and call.function == "cross_entropy"
        and len(call.inputs.shape) == 2
        and call.inputs.shape[1] == 1
    )
    why = ": the softmax of a single output is 1, whatever the model computes" if one else ""
    yield Finding(
        message=f"the loss is {loss.value:.4g} and does not depend on the weights{why}",
        measured={"loss": loss.value, **({"outputs": 1} if one else {})},
        where=loss_place(loss, setup),
        proof=Proof("moving every trained weight by a tenth of its spread leaves the loss the same to the last bit"),
        repair=_binary(call) if one and call is not None else None,
        fix=Fix(
            does=f"use {setup.words.loss('binary_cross_entropy_with_logits')} for one output"
            if one
            else "compute the loss from the model's output"
        ),
    )


def _binary(seen: LossCall) -> Repair | None:
    """The loss for one output, if the targets are 0 and 1 in the outputs' shape."""
    if seen.targets.shape != seen.inputs.shape or not set(seen.target_values) <= {0.0, 1.0}:
        return None

    def change(call: Call) -> Call:
        if call["function"] != "cross_entropy":
            return call
        return call.without("weight").replace(function="binary_cross_entropy_with_logits")

    return Repair("compute binary_cross_entropy_with_logits instead of cross_entropy", Seam.LOSS, change)
