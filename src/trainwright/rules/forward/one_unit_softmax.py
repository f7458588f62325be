"""TW304 one-unit-softmax: a softmax is taken over a dimension of size one.

Why it matters: It returns 1 for every input, so the loss is constant and nothing is learned.
Evidence: The scores that reach the loss are all 1.0, and a softmax over one unit made them.
Fix (unsafe): Use a sigmoid, or no activation with binary_cross_entropy_with_logits; or one unit per class.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.rules.repairs import swap_activation
from trainwright.stages import LossFacts, SetupFacts


@rule("TW304", Severity.ERROR)
def one_unit_softmax(loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Scores produced by a softmax over a single unit."""
    call = loss.call
    if call is None or call.activation not in ("softmax", "log_softmax"):
        return
    scores, constant = call.inputs, 1.0 if call.activation == "softmax" else 0.0
    one_unit = len(scores.shape) == 1 or scores.shape[-1] == 1
    if (
        not one_unit
        or not scores.minimum == scores.maximum == constant
        or (len(scores.shape) == 1 and scores.shape[0] < 2)
    ):
        return
    yield Finding(
        message=f"{call.activation} runs over a dimension of size 1: each of the {scores.shape[0]} outputs is {constant}, whatever the input",
        measured={"units": 1, "outputs": scores.shape[0], "value": constant},
        where=call.activation_at or setup.place(Role.MODEL),
        proof=Proof(f"all {scores.shape[0]} outputs of the batch are {constant}"),
        repair=swap_activation("sigmoid", call),
        fix=Fix(does="use a sigmoid for one unit, or give the head one unit per class", safety=Safety.UNSAFE),
    )
