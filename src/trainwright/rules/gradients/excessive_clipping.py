"""TW517 excessive-clipping: clipping leaves so little of the gradient that the planned training learns nothing.

Why it matters: No update is larger than the clipping allows, however large the gradient is. The loss stays where it
began, as with a rate that is far too small; a higher rate would hide the cause.
Evidence: The gradient's norm before and after clipping. With the rate raised so far that a few steps move the weights as
far as the whole planned training would, one batch is not learned. Without clipping it is, at the script's own rate, on
three seeds.
Fix (unsafe): Clip at about the norm that the gradients usually have, so that only outliers are cut.
"""

from __future__ import annotations

from statistics import fmean

from trainwright.core import Diagnosis, Finding, Fix, Role, Safety, Severity, rule
from trainwright.core.trial import LEARNT_SHARE, Trial
from trainwright.rules.clipping import clipped_while_scaled, left_unclipped
from trainwright.rules.repairs import scale_learning_rate
from trainwright.stages import OptimizerFacts, OverfitFacts, SetupFacts
from trainwright.stages.gradients import CLIPPED, GradientChange, GradientFacts

STEPS = 12
# Clipping that is meant for outliers leaves more than this of an ordinary gradient.
MOST_LEFT = 0.2


@rule("TW517", Severity.ERROR)
def excessive_clipping(
    gradients: GradientFacts, overfit: OverfitFacts, optimizer: OptimizerFacts, setup: SetupFacts
) -> Diagnosis:
    """Clipped gradients with which not even all planned steps lower the loss, and unclipped ones that do."""
    clip, updates = _clip(gradients), optimizer.planned_updates
    if clip is None or clip.left > MOST_LEFT or not overfit.slow or not updates:
        return
    share = fmean(factor for _, factor in optimizer.schedule) if optimizer.schedule else 1.0
    whole = max(1.0, updates * share / STEPS)
    outcome = yield Trial(change=left_unclipped(), against=scale_learning_rate(whole), steps=STEPS)
    still = all(after > (1 - LEARNT_SHARE) * start for after, start in zip(outcome.before, outcome.start))
    if not still or not (outcome.clearly_better or outcome.learns_alone):
        return
    by_library = () if gradients.window_changes else (Role.OPTIMIZER,)
    yield Finding(
        message=f"clipping takes the gradient's norm from {clip.before:.3g} to {clip.after:.3g}, and all {updates:,} planned "
        f"updates together take the loss of one batch from {fmean(outcome.start):.4g} to {fmean(outcome.before):.4g}; {STEPS} "
        f"updates without clipping take it to {fmean(outcome.after):.4g}",
        measured={
            "norm": clip.before,
            "clipped_norm": clip.after,
            "planned_updates": updates,
            "loss": fmean(outcome.before),
            "loss_without_clipping": fmean(outcome.after),
        },
        where=clip.where or setup.place(Role.MAX_GRAD_NORM, Role.ARGUMENTS, *by_library, Role.TRAINER),
        proof=outcome,
        repair=left_unclipped(),
        fix=Fix(does=f"clip at a norm of about {max(1.0, clip.before):.2g}, or not at all", safety=Safety.UNSAFE),
    )


def _clip(gradients: GradientFacts) -> GradientChange | None:
    """The clipping that leaves the least; of a library's, which is known by its limit, what it makes of the norm."""
    seen = [change for change in gradients.window_changes if change.kind == CLIPPED]
    if clipped_while_scaled(gradients):
        return None  # misused-scaler
    if seen:
        return min(seen, key=lambda change: change.left)
    norm, limit = gradients.norm, gradients.clip_at
    if gradients.window_changes or not norm or not limit:
        return None
    return GradientChange(kind=CLIPPED, before=norm, after=min(norm, limit))
