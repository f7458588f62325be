"""TW516 misused-scaler: a call of the gradient scaler is missing, comes twice, or gets weights that it cannot serve.

Why it matters: The first or second step raises an error; its message speaks of the scaler's checks, not of the call that
is wrong. Clipping before unscale_ raises none: it cuts every gradient, and the updates become thousands of times smaller.
Evidence: The error that the scaler raised, in the first step or in the second, and which calls the step made. Or the
gradient's norm after clipping and at the step: unscaling has divided the clipped one (a note where the optimizer divides
the gradient's size out).
Error: `unscale_() has already been called on this optimizer since the last update()`
Error: `unscale_() is being called after step()`
Error: `step() has already been called since the last update()`
Error: `No inf checks were recorded prior to update`
Error: `No inf checks were recorded for this optimizer`
Error: `Attempting to unscale FP16 gradients`
Fix (safe): Once per update and in this order: scale(loss).backward(), unscale_(optimizer) to clip, step(optimizer),
update(). Keep the weights in float32.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Failure, Finding, Fix, Place, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.frameworks.error_texts import (
    HALF_WEIGHTS,
    SCALER_STEPPED_TWICE,
    STEPPED_WITHOUT_GRADIENTS,
    UNSCALED_AFTER_STEP,
    UNSCALED_TWICE,
    UPDATED_WITHOUT_STEP,
)
from trainwright.stages import GradientFacts, SetupFacts
from trainwright.stages.gradients import CLIPPED, STEP, GradientChange

# What the scaler raises where one step calls it wrongly: what that means, and what to do.
_WITHIN_A_STEP = {
    UNSCALED_TWICE: (
        "the gradients of one optimizer are unscaled twice before an update",
        "call scaler.unscale_(optimizer) once per update, before clipping; to accumulate, only in the step that updates",
    ),
    UNSCALED_AFTER_STEP: (
        "the gradients are unscaled after the optimizer has stepped with them",
        "call scaler.unscale_(optimizer) before scaler.step(optimizer)",
    ),
    SCALER_STEPPED_TWICE: (
        "the scaler steps one optimizer twice before it is updated",
        "call scaler.step(optimizer) once per update, then scaler.update()",
    ),
}
# The same errors in the second step, where the first one stepped: nothing ended the first.
_NOT_UPDATED = (UNSCALED_AFTER_STEP, SCALER_STEPPED_TWICE)
# Division by the scale is exact but for rounding.
UNSCALED_WITHIN = 0.01
# A smaller scale hardly changes what clipping does.
SMALLEST_SCALE = 4.0


@rule("TW516", Severity.ERROR)
def misused_scaler(gradients: GradientFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A step that the gradient scaler itself refused."""
    first, second = gradients.failure, gradients.second_failure
    if first is not None:
        yield from _in_one_step(first, gradients, setup)
    elif second is not None:
        yield from _in_the_next(second, setup)
    else:
        yield from _clipped_scaled(gradients)


def _clipped_scaled(gradients: GradientFacts) -> Iterator[Finding]:
    """Clipping before the gradients are unscaled: what reaches the step is the clipped norm, divided by the scale."""
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


def _in_the_next(failure: Failure, setup: SetupFacts) -> Iterator[Finding]:
    proof = f"step 1 completed; step 2 raised {failure}"
    if any(text in failure.message for text in _NOT_UPDATED):
        says = "the scaler is not updated at the end of a step, and refuses the next one"
        does = "call scaler.update() once, after scaler.step(optimizer) of every optimizer"
        yield _finding(failure, says, does, setup.place(Role.OPTIMIZER_STEP), proof)
    elif UNSCALED_TWICE in failure.message:  # the first unscaled and did not step: it only accumulates
        yield _finding(failure, *_WITHIN_A_STEP[UNSCALED_TWICE], proof=proof)


def _in_one_step(failure: Failure, gradients: GradientFacts, setup: SetupFacts) -> Iterator[Finding]:
    for text, (says, does) in _WITHIN_A_STEP.items():
        if text in failure.message:
            yield _finding(failure, says, does)
    if UPDATED_WITHOUT_STEP in failure.message:
        stepped = setup.place(Role.OPTIMIZER_STEP)
        says = "the optimizer steps by itself, with gradients that are still multiplied by the scaler's scale"
        yield _finding(
            failure,
            says if stepped else "the scaler is updated, but has stepped no optimizer",
            "replace optimizer.step() with scaler.step(optimizer), which unscales the gradients and skips infinite ones",
            stepped,
        )
    elif STEPPED_WITHOUT_GRADIENTS in failure.message:
        reached, count = len(gradients.gradients) - len(gradients.without), len(gradients.gradients)
        yield _finding(
            failure,
            f"the scaler is to step an optimizer none of whose parameters has a gradient; backward reached {reached} of "
            f"the model's {count}",
            "build the optimizer from the parameters of the model that is trained, and clear the gradients only after "
            "the step",
        )
    elif HALF_WEIGHTS in failure.message:
        yield _finding(
            failure,
            "the weights are in half precision, and their gradients cannot be unscaled in place",
            "keep the weights in float32 (without half()) and let autocast compute in half precision, or train in "
            "bfloat16 without a scaler",
        )


def _finding(failure: Failure, says: str, does: str, where: Place | None = None, proof: str = "") -> Finding:
    return Finding(
        message=says,
        measured={"raised": failure.type},
        where=where or failure.where,
        proof=Proof(proof or f"the step raised {failure}"),
        fix=Fix(does=does, safety=Safety.SAFE),
    )
