"""TW327 undersized-initialisation: the initial weights are so small that no signal passes through the layers.

Why it matters: Each layer shrinks its input, and the gradients with it. The loss stays at that of a constant prediction.
Evidence: The weights' standard deviation compared with the framework's own, and one batch that is not learned. Scaled up
to the framework's own, it is.
Fix (unsafe): Keep the framework's initialization, or use a standard deviation of about 1/sqrt(inputs).
"""

from __future__ import annotations

from trainwright.core import Diagnosis, Finding, Fix, Role, Safety, Seam, Severity, Trial, rule
from trainwright.rules.repairs import scale_parameters
from trainwright.stages import ForwardFacts, OverfitFacts, SetupFacts

# GPT-2's 0.02 is a quarter of torch's own deviation for 64 inputs; scaled by its depth, a thirtieth. 50 is none.
UNDERSIZED_FACTOR = 50.0
# A table that is looked up, of deviation 1 by default, shrinks no input; a layer of one input has 0.58.
LOOKUP = 1.0
# One layer may begin at nearly zero on purpose, as the last one of a residual branch; two in a row pass nothing on.
FEWEST_LAYERS = 2


@rule("TW327", Severity.ERROR, raises=False)
def undersized_initialisation(forward: ForwardFacts, overfit: OverfitFacts, setup: SetupFacts) -> Diagnosis:
    """Weights far below the usual deviation, with which one batch is not learned."""
    if overfit.learnt or overfit.diverged:
        return
    small = {
        p.name: p.default_deviation / p.deviation
        for p in forward.parameters
        if len(p.shape) > 1
        and p.default_deviation
        and 0 < p.deviation * UNDERSIZED_FACTOR < p.default_deviation < LOOKUP
        and p.freshly_initialised is not False
    }
    if len(small) < FEWEST_LAYERS:
        return
    outcome = yield Trial(change=scale_parameters(small, Seam.OPTIMIZER))
    if not (outcome.clearly_better or outcome.learns_alone):
        return
    first = next(p for p in forward.parameters if p.name in small)
    yield Finding(
        message=f"{first.name} and {len(small) - 1} more have an initial standard deviation of {first.deviation:.3g}, but the "
        f"framework's own is {first.default_deviation:.3g}: {len(overfit.losses)} steps on one batch take the loss from "
        f"{overfit.losses[0]:.4g} to {overfit.losses[-1]:.4g}",
        measured={
            "parameter": first.name,
            "deviation": first.deviation,
            "usual_deviation": first.default_deviation or 0.0,
            "layers": len(small),
        },
        where=forward.place_of(first.module) or setup.place(Role.MODEL),
        proof=outcome,
        repair=scale_parameters(small, Seam.TRAINER),
        fix=Fix(
            does=f"initialize {first.name} with a standard deviation of about {first.default_deviation:.2g}",
            safety=Safety.UNSAFE,
        ),
    )
