"""TW309 oversized-initialisation: the initial weights are so large that the first loss is far above chance.

Why it matters: Training spends its first epochs, or all of them, on unlearning confident wrong answers.
Evidence: The first loss compared with that of chance, and the weights' standard deviation compared with the framework's
own. Scaled to that, the batch is learned clearly better.
Fix (unsafe): Keep the framework's initialization, or use a standard deviation of about 1/sqrt(inputs).
"""

from __future__ import annotations

from math import isfinite

from trainwright.core import Diagnosis, Finding, Fix, Role, Safety, Seam, Severity, Trial, rule
from trainwright.rules.repairs import scale_parameters
from trainwright.stages import ForwardFacts, LossFacts, SetupFacts

# torch's default is 1/sqrt(3 n); He's sqrt(2/n) is 2.4 times that; orthogonal and Xavier are in between. 5 is none.
OVERSIZED_FACTOR = 5.0
# Random scores of unit size cost about half a nat above chance; they do not reach twice chance.
FAR_ABOVE_CHANCE = 2.0
FAR_ABOVE_VARIANCE = 10.0


@rule("TW309", Severity.ERROR)
def oversized_initialisation(forward: ForwardFacts, loss: LossFacts, setup: SetupFacts) -> Diagnosis:
    """A first loss far above chance, caused by weights far above the usual deviation."""
    limit = FAR_ABOVE_CHANCE if loss.chance_nats else FAR_ABOVE_VARIANCE
    if (
        loss.value is None
        or not loss.expected
        or not isfinite(loss.value)
        or loss.value < limit * loss.expected
        or any(c.misreads_scores for c in loss.calls)  # the first loss is of other numbers than the model gives
    ):
        return
    large = {
        p.name: p.default_deviation / p.deviation
        for p in forward.parameters
        if p.default_deviation
        and p.deviation > OVERSIZED_FACTOR * p.default_deviation
        and p.freshly_initialised is not False
    }
    if not large:
        return
    outcome = yield Trial(change=scale_parameters(large, Seam.OPTIMIZER))
    if not outcome.clearly_better:
        return
    first = next(p for p in forward.parameters if p.name in large)
    more = f" and {len(large) - 1} more" if len(large) > 1 else ""
    unit = "nats, and chance is" if loss.chance_nats else "and predicting 0 would give"
    yield Finding(
        message=f"{first.name}{more} {'have' if more else 'has'} an initial standard deviation of {first.deviation:.3g}, but the framework's own is "
        f"{first.default_deviation:.3g}: the first loss is {loss.value:.4g} {unit} {loss.expected:.4g}",
        measured={
            "parameter": first.name,
            "deviation": first.deviation,
            "usual_deviation": first.default_deviation or 0.0,
            "first_loss": loss.value,
            "chance": loss.expected,
        },
        where=forward.place_of(first.module) or setup.place(Role.MODEL),
        proof=outcome,
        repair=scale_parameters(large, Seam.TRAINER),
        fix=Fix(
            does=f"initialize {first.name} with a standard deviation of about {first.default_deviation:.2g}",
            safety=Safety.UNSAFE,
        ),
    )
