"""TW515 unscaled-loss: the optimizer divides the gradients by a loss scale that the loss was never multiplied by.

Why it matters: The gradients in every update are tens of thousands of times too small; the weights hardly move.
Evidence: Two steps on the same batch from the same weights, the second with twice the scale: the gradients are the
same, but those of a scaled loss would be twice as large. Or the error of a scaler that never scaled a loss.
Error: `Attempted unscale_ but _scale is None`
Error: `Attempted step but _scale is None`
Fix (unsafe): Multiply the loss by the scale before computing its gradients: scaler.scale(loss).backward(), or
optimizer.scale_loss(loss) in Keras.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.frameworks.error_texts import LOSS_NOT_SCALED
from trainwright.stages import GradientFacts, SetupFacts

# The gradients follow the scale completely or not at all; float16 rounds them to three digits.
FOLLOWS = 0.5


@rule("TW515", Severity.ERROR)
def unscaled_loss(gradients: GradientFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Gradients that stay the same when the loss scale is doubled, or a scaler that refuses a loss it never scaled."""
    failure = gradients.failure
    if failure is not None and LOSS_NOT_SCALED in failure.message:
        yield Finding(
            message="the scaler is to divide the gradients by its scale, but the loss was never multiplied by it",
            measured={"raised": failure.type},
            where=next((place for place in gradients.backwards if place is not None), failure.where),
            proof=Proof(f"the step raised {failure}"),
            fix=Fix(does="write scaler.scale(loss).backward() for loss.backward()", safety=Safety.SAFE),
        )
        return
    scale, follows = gradients.loss_scale, gradients.follows_loss_scale
    if scale is None or follows is None or abs(follows) >= FOLLOWS:
        return
    yield Finding(
        message=f"the optimizer divides the gradients by its loss scale of {scale:,.0f}, but the loss is not multiplied by it",
        measured={"loss_scale": scale, "follows_loss_scale": round(follows, 4)},
        where=setup.place(Role.TRAIN_STEP, Role.OPTIMIZER, Role.TRAIN_CALL),
        proof=Proof(
            f"with twice the scale, the gradients of the same batch are {1 + follows:.3f} times as large; 2 is correct"
        ),
        fix=Fix(
            does="take the gradients of optimizer.scale_loss(loss) instead of those of the loss", safety=Safety.UNSAFE
        ),
    )
