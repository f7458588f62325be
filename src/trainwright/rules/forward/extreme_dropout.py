"""TW316 extreme-dropout: dropout is so strong that one batch cannot be learned.

Why it matters: Too little of the signal is left to fit even rows that are seen again and again.
Evidence: The batch is not memorized with the dropout, and learned clearly better without it.
Fix (unsafe): Use a probability of 0.1 to 0.5.
"""

from __future__ import annotations

from trainwright.core import Call, Diagnosis, Finding, Fix, Repair, Role, Safety, Seam, Severity, Trial, rule
from trainwright.stages import ForwardFacts, OverfitFacts, SetupFacts

# 0.5 is the highest probability in common use (Srivastava et al. 2014); 0.7 occurs before a last layer.
EXTREME = 0.75


@rule("TW316", Severity.WARNING)
def extreme_dropout(forward: ForwardFacts, overfit: OverfitFacts, setup: SetupFacts) -> Diagnosis:
    """Dropout stronger than common practice, on a batch that is not learned."""
    strong = [m for m in forward.modules if m.dropout is not None and m.dropout >= EXTREME and m.training]
    if overfit.learnt or not strong:
        return
    outcome = yield Trial(change=Repair("dropout 0", Seam.FORWARD, _without), steps=24)
    if not outcome.clearly_better:
        return
    first = max(strong, key=lambda m: m.dropout or 0.0)
    yield Finding(
        message=f"{first.name} drops {first.dropout:.0%} of its values, so a batch is not memorized; without dropout, it is learned better",
        measured={"probability": first.dropout or 0.0, "modules": len(strong)},
        where=first.where or setup.place(Role.MODEL),
        proof=outcome,
        repair=Repair("set dropout to 0.1", Seam.FORWARD, _mild),
        fix=Fix(
            does="set the dropout probability to 0.1 to 0.5 (p is the fraction that is dropped)", safety=Safety.UNSAFE
        ),
    )


def _without(call: Call) -> Call:
    call.tensors.set_dropout(call["model"], 0.0)
    return call


def _mild(call: Call) -> Call:
    call.tensors.set_dropout(call["model"], 0.1)
    return call
