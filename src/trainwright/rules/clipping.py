"""Clipping of gradients, as several rules judge it."""

from __future__ import annotations

from trainwright.core import Call, Repair, Seam
from trainwright.stages.gradients import CLIPPED, STEP, GradientChange, GradientFacts

# Division by the scale is exact but for rounding.
UNSCALED_WITHIN = 0.01
# A smaller scale hardly changes what clipping does.
SMALLEST_SCALE = 4.0


def clipped_while_scaled(gradients: GradientFacts) -> tuple[GradientChange, float] | None:
    """The clipping of gradients that were still multiplied by a loss scale, and the norm left at the step."""
    scale, steps = gradients.loss_scale, [c for c in gradients.window_changes if c.kind == STEP]
    clips = [c for c in gradients.window_changes if c.kind == CLIPPED and c.left < 1 - UNSCALED_WITHIN]
    if not steps or not clips or scale is None or scale < SMALLEST_SCALE or not clips[-1].after:
        return None
    stepped = steps[0].before
    return (clips[-1], stepped) if abs(stepped * scale / clips[-1].after - 1) < UNSCALED_WITHIN else None


def left_unclipped() -> Repair:
    """Clipping changes nothing."""

    def change(call: Call) -> Call:
        call.tensors.leave_unclipped(call["optimizer"])
        return call

    return Repair("leave the gradients unclipped", Seam.OPTIMIZER, change)
