"""TW507 hidden-non-finite-loss: some batches give a NaN or infinite loss, and the log leaves them out.

Why it matters: For a step whose loss is NaN, the Trainer's log filter writes 0.0 or the mean of the other steps. That
step still makes every weight NaN.
Evidence: The losses of the first batches, recomputed with the initial weights, and the filter's setting.
Fix (manual): Set logging_nan_inf_filter=False to see them, and fix what these batches have in common.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import GradientFacts, LossFacts, SetupFacts


@rule("TW507", Severity.ERROR, residual=True)
def hidden_non_finite_loss(gradients: GradientFacts, setup: SetupFacts, loss: LossFacts) -> Iterator[Finding]:
    """A loss that is not finite on some batch, which the framework's log hides."""
    setting = setup.arguments.get("logging_nan_inf_filter")
    losses = gradients.batch_losses or ((loss.value,) if loss.value is not None else ())
    bad = [i for i, value in enumerate(losses) if not math.isfinite(value)]
    if not bad or setting is None or not setting.value:
        return
    first = losses[bad[0]]
    yield Finding(
        message=f"the loss of {len(bad)} of the first {len(losses)} batches is {first} (batch {bad[0] + 1} first), and the "
        "log shows 0.0 or the mean of the others instead",
        measured={"non_finite_batches": len(bad), "batches": len(losses), "first_batch": bad[0] + 1},
        where=loss.at or setup.place(Role.COMPUTE_LOSS, Role.LOSS, Role.MODEL, Role.TRAINER),
        proof=Proof(f"recomputed: {', '.join(f'{x:.4g}' for x in losses[:8])}; logging_nan_inf_filter={setting.value}"),
        fix=Fix(does="set logging_nan_inf_filter=False to see it, and fix the loss of such batches"),
    )
