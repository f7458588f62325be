"""The weights that a training begins with."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from trainwright.core import Diagnosis, Finding, Proof, Repair, Role, Seam, Severity, Trial, rule
from trainwright.rules.fixes import safe, unsafe
from trainwright.rules.repairs import on_model, scale_parameters
from trainwright.stages import ForwardFacts, LossFacts, OverfitFacts, SetupFacts


@rule("TW308", Severity.ERROR)
def identical_units(forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Matrices whose rows are equal before and after a few steps."""
    equal = [p for p in forward.parameters if p.identical_after_steps]
    if not equal:
        return
    first, value = equal[0], equal[0].mean
    more = f", and those of {len(equal) - 1} more" if len(equal) > 1 else ""
    start = f"all start at {value:.4g}" if first.deviation <= 1e-6 * abs(value) else "start equal"
    yield Finding(
        message=f"the {first.units} units of {first.name} {start}{more}, and are still equal after 3 steps",
        measured={"parameter": first.name, "units": first.units, "value": value, "parameters": len(equal)},
        where=forward.place_of(first.module) or setup.place(Role.MODEL),
        proof=Proof(
            f"the units of {first.name} {first.shape} do not differ, before and after three steps with a gradient"
        ),
        repair=_draw(tuple(p.name for p in equal)),
        fix=safe(f"initialize {first.name} at random (remove its constant initialization)"),
    )


def _draw(names: tuple[str, ...]) -> Repair:
    return on_model(
        f"initialize {', '.join(names[:3])}{' and more' if len(names) > 3 else ''} at random",
        lambda tensors, model: tensors.reinitialise(model, names),
    )


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
        fix=unsafe(f"initialize {first.name} with a standard deviation of about {first.default_deviation:.2g}"),
    )


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
        fix=unsafe(f"initialize {first.name} with a standard deviation of about {first.default_deviation:.2g}"),
    )
