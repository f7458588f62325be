"""TW121 inputs-scaled-twice: the data is scaled, and the model scales it again.

Why it matters: Pixels divided by 255 twice differ by less than 0.004, and the first layer hardly sees them.
Evidence: A layer without weights shrinks its input to almost nothing before the first layer with weights; from the
same weights on the same rows, inputs scaled once are learned clearly better, on three seeds.
Fix (unsafe): Remove one of the two scalings.
"""

from __future__ import annotations

from statistics import fmean

from trainwright.core import Diagnosis, Finding, Fix, Role, Safety, Severity, Trial, rule
from trainwright.rules.scaling import BATCHES, STEPS, keep_scaled, reach, real_inputs, rescale, scaled_away
from trainwright.stages import BatchFacts, ForwardFacts, LossFacts, SetupFacts


@rule("TW121", Severity.WARNING, after="TW106")
def inputs_scaled_twice(batch: BatchFacts, forward: ForwardFacts, loss: LossFacts, setup: SetupFacts) -> Diagnosis:
    """Inputs that the model scales down to almost nothing, and that are learned clearly better when scaled once."""
    layer = scaled_away(forward)
    if layer is None or loss.value is None:
        return
    inputs = real_inputs(batch)
    given, made = layer.inputs[0], layer.output
    if len(inputs) != 1 or made is None:
        return
    key, factor = next(iter(inputs)), reach(made) / reach(given)
    undone = f"undo the scaling of {layer.name}"
    outcome = yield Trial(change=rescale(key, (0.0, factor), undone), steps=STEPS, batches=BATCHES)
    if not outcome.clearly_better:
        return
    before, after = fmean(outcome.before), fmean(outcome.after)
    yield Finding(
        message=f"{layer.name} ({layer.kind}) gets values up to {reach(given):.3g} and outputs values up to {reach(made):.2g}: "
        f"after {outcome.steps} updates the loss is {before:.3g}, or {after:.3g} without this scaling",
        measured={"largest_given": reach(given), "largest_left": reach(made), "loss": before, "loss_without": after},
        where=layer.where or setup.place(Role.MODEL),
        proof=outcome,
        repair=keep_scaled(key, (0.0, factor), undone),
        fix=Fix(does=f"scale the inputs once: remove {layer.name}, or the scaling before it", safety=Safety.UNSAFE),
    )
