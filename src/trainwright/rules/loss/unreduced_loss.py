"""TW460 unreduced-loss: backward is called on a loss with one value per row instead of a single number.

Why it matters: Training stops at its first step. The message does not say which loss call kept a value for each row.
Evidence: The shape of the tensor that backward was called on, and the loss call with reduction="none" that it comes from.
Error: `grad can be implicitly created only for scalar outputs`
Fix (unsafe): Leave out reduction="none", or take the mean before backward. If the rows have weights, take the mean after
multiplying by them.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.stages import GradientFacts, SetupFacts, UnreducedLoss

_MESSAGE = "grad can be implicitly created only for scalar outputs"


@rule("TW460", Severity.ERROR)
def unreduced_loss(gradients: GradientFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A backward that raised because it was called on several numbers."""
    failure, seen = gradients.failure, gradients.unreduced
    if failure is None or seen is None or _MESSAGE not in failure.message:
        return
    yield Finding(
        message=f"backward is called on a loss of shape {seen.shape}, but it needs a single number: {_why(seen, setup)}",
        measured={"shape": str(seen.shape), "function": seen.function or "handwritten"},
        where=seen.at or failure.where or setup.place(Role.COMPUTE_LOSS, Role.TRAINING_STEP, Role.MODEL, Role.TRAINER),
        proof=Proof(f"backward raised {failure}"),
        repair=_mean(seen.function) if seen.function and not seen.further else None,
        fix=Fix(
            does='leave out reduction="none" in this loss, or call .mean() on its value before backward'
            if seen.function and not seen.further
            else "take the mean of the loss before backward: loss = loss.mean()",
            safety=Safety.UNSAFE,
        ),
    )


def _why(seen: UnreducedLoss, setup: SetupFacts) -> str:
    if not seen.function:
        return "its elements are never averaged or summed"
    kept = f'{setup.words.loss(seen.function)} has reduction="none"'
    return f"{kept}, and what is computed from its value is never averaged" if seen.further else kept


def _mean(function: str) -> Repair:
    def change(call: Call) -> Call:
        own = call["function"] == function and call.given.get("reduction") == "none"
        return call.replace(reduction="mean") if own else call

    return Repair(f"average the values of {function}", Seam.LOSS, change)
