"""TW506 non-finite-gradients: a finite loss has NaN or infinite gradients.

Why it matters: One update with them makes every weight NaN, although the loss before it looked right.
Evidence: The first parameter whose gradient is not finite, and the call whose backward caused it (anomaly mode).
Error: `returned nan values in its 0th output`
Fix (manual): Keep the operation away from points where its slope is infinite: sqrt(x + 1e-8), or clamp before log.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import GradientFacts, LossFacts, SetupFacts

_ADVICE = {"Sqrt": "add a small constant inside the root: sqrt(x + 1e-8)", "Log": "clamp before the logarithm: x.clamp_min(1e-8)",
           "Pow": "add a small constant before the power", "Std": "take the root of variance + 1e-8",
           "Div": "add a small constant to the divisor", "Acos": "clamp to (-1 + 1e-6, 1 - 1e-6) first"}  # fmt: skip


@rule("TW506", Severity.ERROR)
def non_finite_gradients(gradients: GradientFacts, loss: LossFacts, setup: SetupFacts) -> Iterator[Finding]:
    """NaN or infinite gradients of a finite loss."""
    bad = [g for g in gradients.gradients if g.non_finite]
    # In float16, steps are skipped until a loss scale is found, so infinite gradients are normal.
    if not bad or not gradients.loss_finite or gradients.failure or setup.precision == "fp16":
        return
    operation = gradients.anomaly
    made = f"; the backward of {operation} produced the first" if operation else ""
    yield Finding(
        message=f"the loss is finite ({loss.value:.4g}), but the gradient of {len(bad)} of {len(gradients.gradients)} "
        f"parameters is not ({bad[0].name} first){made}",
        measured={"non_finite_parameters": len(bad), "first": bad[0].name, "operation": operation or "unknown"},
        where=gradients.anomaly_at or bad[0].where or setup.place(Role.COMPUTE_LOSS, Role.MODEL),
        proof=Proof(f"{bad[0].non_finite} of the values of {bad[0].name}'s gradient are NaN or infinite"),
        fix=Fix(
            does=_ADVICE.get(
                operation, f"keep {operation or 'the operation'} away from points where its slope is infinite"
            )
        ),
    )
