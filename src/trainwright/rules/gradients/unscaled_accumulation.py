"""TW509 unscaled-accumulation: the accumulated gradient is a multiple of the full batch's gradient.

Why it matters: With k micro-batches, the gradient and the logged loss are k times too large, so clipping is k times
stronger, and rates found without accumulation do not work. Adam and its kind divide by the gradient's size; there it is a
note.
Evidence: One accumulation window is run as in training, and its gradient is measured in multiples of the mean of the
micro-batches' own gradients. The optimizer is asked on a parameter of its own whether its update grows with the gradient.
Fix (unsafe): Divide by num_items_in_batch, or set loss_is_scaled_for_ga = False in the Trainer subclass.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.stages import GradientFacts, LossFacts, SetupFacts

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
            f"least squares of the accumulated gradient on those of the {count} micro-batches: shares sum to {share:.3f}"
        ),
        fix=Fix(
            does="divide the loss by the number of micro-batches"
            + (f" ({setup.words.averaged_accumulation})" if setup.words.averaged_accumulation else "")
            if factor > 1
            else "divide only once: the framework already does",
            safety=Safety.UNSAFE,
        ),
    )
