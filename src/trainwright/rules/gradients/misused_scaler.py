"""TW516 misused-scaler: gradients are clipped while they are still multiplied by the gradient scaler's scale.

Why it matters: No error is raised: it cuts every gradient, and the updates become thousands of times smaller.
Evidence: The gradient's norm after clipping and at the step: unscaling has divided the clipped one (a note where the
optimizer divides the gradient's size out).
Fix (safe): Once per update and in this order: scale(loss).backward(), unscale_(optimizer), clip, step(optimizer), update().
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Safety, Seam, Severity, rule
from trainwright.stages import GradientFacts
from trainwright.stages.gradients import CLIPPED, STEP, GradientChange

# Division by the scale is exact but for rounding.
UNSCALED_WITHIN = 0.01
# A smaller scale hardly changes what clipping does.
SMALLEST_SCALE = 4.0


@rule("TW516", Severity.ERROR)
def misused_scaler(gradients: GradientFacts) -> Iterator[Finding]:
    """Clipping before the gradients are unscaled: what reaches the step is the clipped norm, divided by the scale."""
    if gradients.failure is not None or gradients.second_failure is not None:
        return
    found, scale = clipped_while_scaled(gradients), gradients.loss_scale
    if found is None:
        return
    clip, stepped = found
    yield Finding(
        message=f"the gradients are clipped while they are still multiplied by the scaler's scale of {scale:,.0f}: their norm "
        f"goes from {clip.before:.3g} to {clip.after:.3g}, and {stepped:.3g} of it is left at the step",
        measured={"scale": scale or 0.0, "clipped_norm": clip.after, "norm_at_step": stepped},
        where=clip.where,
        severity=Severity.NOTE if gradients.size_is_divided_out else Severity.WARNING,
        proof=Proof(
            f"the norm after clipping, {clip.after:.4g}, is {clip.after / stepped:,.0f} times that at the step"
        ),
        repair=_left_unclipped(),
        fix=Fix(does="call scaler.unscale_(optimizer) before clipping", safety=Safety.SAFE),
    )


def clipped_while_scaled(gradients: GradientFacts) -> tuple[GradientChange, float] | None:
    """The clipping of gradients that were still multiplied by a loss scale, and the norm left at the step."""
    scale, steps = gradients.loss_scale, [c for c in gradients.window_changes if c.kind == STEP]
    clips = [c for c in gradients.window_changes if c.kind == CLIPPED and c.left < 1 - UNSCALED_WITHIN]
    if not steps or not clips or scale is None or scale < SMALLEST_SCALE or not clips[-1].after:
        return None
    stepped = steps[0].before
    return (clips[-1], stepped) if abs(stepped * scale / clips[-1].after - 1) < UNSCALED_WITHIN else None


def _left_unclipped() -> Repair:
    """Clipping changes nothing."""

    def change(call: Call) -> Call:
        call.tensors.leave_unclipped(call["optimizer"])
        return call

    return Repair("leave the gradients unclipped", Seam.OPTIMIZER, change)
