"""What is in the gradients at an update: too much, too little, or at a wrong scale."""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Proof, Role, Seam, Severity, rule
from trainwright.frameworks.error_texts import LOSS_NOT_SCALED
from trainwright.rules.fixes import safe, unsafe
from trainwright.rules.repairs import on_model
from trainwright.stages import GradientFacts, LossFacts, SetupFacts

# The ratio is 0 for a cleared gradient and 1 for an uncleared one; rounding and random layers stay far from 0.5.
LEFT_OVER = 0.5
_CLEARED = {True: "no line clears the gradients", False: "despite the call that should clear the gradients"}


@rule("TW501", Severity.ERROR)
def uncleared_gradients(gradients: GradientFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A second step whose gradient contains the first step's gradient."""
    left = gradients.leftover_ratio
    if left is None or left < LEFT_OVER:
        return
    never = setup.call == "training loop" and setup.place(Role.ZERO_GRAD) is None
    yield Finding(
        message=f"{_CLEARED[never]}: {left:.0%} of the first batch's gradient is still in that of the second",
        measured={"leftover_ratio": round(left, 4), "accumulation": gradients.accumulation},
        where=setup.place(
            Role.ZERO_GRAD, Role.TRAINING_STEP, Role.BACKWARD, Role.TRAIN_STEP, Role.OPTIMIZER, Role.TRAINER
        ),
        proof=Proof(f"gradient of step 2 minus that of its batch alone = {left:.3f} x gradient of step 1"),
        repair=on_model(
            "clear the gradients before each step", lambda tensors, model: tensors.clear_gradients(model), Seam.FORWARD
        )
        if gradients.accumulation == 1
        else None,
        fix=unsafe("call zero_grad() once per update"),
    )


@rule("TW508", Severity.ERROR)
def wiped_accumulation(gradients: GradientFacts, setup: SetupFacts) -> Iterator[Finding]:
    """An accumulation window with only the last micro-batch's gradient left, or an update with no gradient left."""
    if gradients.wiped:
        yield _before_step(gradients, setup)
    elif gradients.wiped_passes:
        yield _within_step(gradients, setup)
    if gradients.wiped or gradients.wiped_passes or not gradients.only_last:
        return
    count, planned = gradients.accumulated_batches, gradients.accumulation
    yield Finding(
        message=f"of {count} micro-batches only the last one's gradient is left at the update; "
        f"it should hold those of all {planned}",
        measured={"micro_batches": count, "accumulation": planned},
        where=setup.place(
            Role.CLEAR_CALL, Role.TRAINING_STEP, Role.COMPUTE_LOSS, Role.GRADIENT_ACCUMULATION_STEPS, Role.TRAINER
        ),
        proof=Proof(
            f"the gradients are cleared right before the last of {count} backward passes, with those of the others in them"
        ),
        fix=safe("clear the gradients once per update, after it, not once per micro-batch"),
    )


def _before_step(gradients: GradientFacts, setup: SetupFacts) -> Finding:
    count = len(gradients.wiped)
    return Finding(
        message=f"the gradients of {count} parameters are cleared between backward and the optimizer's step, so the step updates nothing",
        measured={"cleared": count, "trainable": len(gradients.gradients)},
        where=gradients.wiped_at or setup.place(Role.OPTIMIZER_STEP, Role.BACKWARD, Role.TRAINER),
        proof=Proof(f"after backward, {count} parameters have a gradient; at the step, none of them has one"),
        fix=safe("clear the gradients before backward, or after the step"),
    )


def _within_step(gradients: GradientFacts, setup: SetupFacts) -> Finding:
    """A step that runs several backward passes and clears the gradients each time."""
    count = gradients.wiped_passes
    return Finding(
        message=f"of {count} backward passes only the last one's gradient is left at the update: the others are cleared",
        measured={"backward_passes": count},
        where=gradients.wiped_at or setup.place(Role.CLEAR_CALL, Role.BACKWARD, Role.TRAINER),
        proof=Proof(
            f"before the optimizer's step, the same line runs backward {count} times, and the gradients are cleared in between"
        ),
        fix=safe("clear the gradients once per update, before its first backward pass"),
    )


# The ratio is 1, k or 1/k; unequal token counts in the micro-batches move it by a few hundredths.
WITHIN = 0.15


@rule("TW509", Severity.WARNING)
def unscaled_accumulation(gradients: GradientFacts, setup: SetupFacts, loss: LossFacts | None) -> Iterator[Finding]:
    """An accumulation window whose gradient is k times, or 1/k of, the mean of its micro-batches' gradients."""
    share, count = gradients.accumulated_share, gradients.accumulated_batches
    # Several models of transformers (DistilBERT's for sequences) return a mean where the Trainer expects a sum over
    # num_items_in_batch; that is not the script's fault.
    if share is None or count < 2 or gradients.only_last or not gradients.user_loss:
        return
    factor = next((f for f in (count, 1 / count) if abs(share / f - 1) < WITHIN), None)
    if factor is None:
        return
    too = "large" if factor > 1 else "small"
    yield Finding(
        severity=Severity.NOTE if gradients.size_is_divided_out else Severity.WARNING,
        message=f"the gradient accumulated over {count} micro-batches is {share:.2f} times their mean; 1 is expected, "
        f"so with {gradients.accumulation} of them per update it is {gradients.accumulation} times too {too}",
        measured={"accumulated_share": round(share, 3), "micro_batches": count, "accumulation": gradients.accumulation},
        where=(loss.at if loss else None)
        or setup.place(
            Role.COMPUTE_LOSS, Role.LOSS, Role.TRAINING_STEP, Role.GRADIENT_ACCUMULATION_STEPS, Role.TRAINER
        ),
        proof=Proof(
            f"the loss of each of {count} micro-batches enters its backward pass times {share / count:.3g}, and the gradients add up"
        ),
        fix=unsafe(
            "divide the loss by the number of micro-batches"
            + (f" ({setup.words.averaged_accumulation})" if setup.words.averaged_accumulation else "")
            if factor > 1
            else "divide only once: the framework already does"
        ),
    )


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
            fix=safe("write scaler.scale(loss).backward() for loss.backward()"),
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
        fix=unsafe("take the gradients of optimizer.scale_loss(loss) instead of those of the loss"),
    )
