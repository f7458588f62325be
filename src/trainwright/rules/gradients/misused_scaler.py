"""TW516 misused-scaler: gradients are clipped while they are still multiplied by the gradient scaler's scale.

Why it matters: No error is raised: it cuts every gradient, and the updates become thousands of times smaller.
Evidence: The gradient's norm after clipping, and at the step: in between it was divided by the scale, a power of two (a note where the
optimizer divides the gradient's size out).
Fix (safe): Once per update and in this order: scale(loss).backward(), unscale_(optimizer), clip, step(optimizer), update().
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Safety, Severity, rule
from trainwright.stages import GradientFacts


@rule("TW516", Severity.ERROR)
def misused_scaler(gradients: GradientFacts) -> Iterator[Finding]:
    """Clipping before the gradients are unscaled: what reaches the step is the clipped norm, divided by the scale."""
    if gradients.unscaled_late is None:
        return
    clip, divided = gradients.unscaled_late
    scale = divided.before / divided.after
    yield Finding(
        message=f"the gradients are clipped while they are still multiplied by the scaler's scale of {scale:,.0f}: their norm "
        f"goes from {clip.before:.3g} to {clip.after:.3g}, and {divided.after:.3g} of it is left at the step",
        measured={"scale": round(scale), "clipped_norm": clip.after, "norm_at_step": divided.after},
        where=clip.where,
        severity=Severity.NOTE if gradients.size_is_divided_out else Severity.WARNING,
        proof=Proof(f"the norm after clipping, {clip.after:.4g}, is {scale:,.0f} times that at the step"),
        fix=Fix(does="call scaler.unscale_(optimizer) before clipping", safety=Safety.SAFE),
    )
