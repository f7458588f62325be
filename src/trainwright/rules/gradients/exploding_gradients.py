"""TW505 exploding-gradients: the gradient is so large that a single step destroys the weights.

Why it matters: The loss jumps or becomes NaN, and a rate low enough to survive this is too low for everything else.
Evidence: The norm before clipping. With the gradient clipped to norm 1, the batch is learned clearly better, on three
seeds.
Fix (unsafe): Clip the gradient: max_grad_norm=1.0.
"""

from __future__ import annotations

from trainwright.core import Call, Diagnosis, Finding, Fix, Repair, Role, Safety, Seam, Severity, Trial, rule
from trainwright.stages import GradientFacts, OverfitFacts, SetupFacts

# Well-initialized networks have norms of 0.1 to 100; the Trainer clips at 1 by default.
EXPLODED = 1e3
CLIPPED_TO = 1.0


@rule("TW505", Severity.ERROR)
def exploding_gradients(gradients: GradientFacts, setup: SetupFacts, overfit: OverfitFacts) -> Diagnosis:
    """An unclipped gradient norm above a thousand; with clipping, the batch is learned."""
    norm = gradients.norm
    if norm is None or not norm > EXPLODED or gradients.clip_at is not None or overfit.learnt:
        return
    outcome = yield Trial(change=_clipping())
    if not outcome.clearly_better:
        return
    yield Finding(
        message=f"the gradient's norm is {norm:.3g} and nothing clips it; up to 100 is usual",
        measured={"norm": norm, "clip_at": "none"},
        where=setup.place(Role.MAX_GRAD_NORM, Role.ARGUMENTS, Role.TRAINER),
        proof=outcome,
        repair=_clipping(),
        fix=Fix(does="clip the gradient: max_grad_norm=1.0", safety=Safety.UNSAFE),
    )


def _clipping() -> Repair:
    def change(call: Call) -> Call:
        call.tensors.clip_gradients(call["optimizer"], CLIPPED_TO)
        return call

    return Repair(f"gradients clipped to norm {CLIPPED_TO:g}", Seam.OPTIMIZER, change)
