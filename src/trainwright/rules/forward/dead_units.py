"""TW310 dead-units: nearly all units of a rectifier are zero for every row.

Why it matters: A unit that is zero for all rows gets no gradient and never recovers.
Evidence: The share of units that are zero for all rows of a batch. With centered inputs, the batch is learned clearly
better.
Fix (unsafe): Use a less negative bias, a lower rate, normalization before the rectifier, or LeakyReLU or GELU.
"""

from __future__ import annotations

from trainwright.core import Diagnosis, Finding, Fix, Role, Safety, Severity, Trial, rule
from trainwright.rules.repairs import standardise_activations
from trainwright.stages import ForwardFacts, SetupFacts

# With all-positive inputs, up to half of a new layer's units are zero for every row of a batch.
DEAD_SHARE = 0.9
FEWEST_UNITS = 8
# If only a few units recover, learning takes time at a usual rate.
STEPS = 32


@rule("TW310", Severity.ERROR)
def dead_units(forward: ForwardFacts, setup: SetupFacts) -> Diagnosis:
    """A rectifier with hardly any live units; reviving them makes the batch learnable."""
    dead = [
        m
        for m in forward.modules
        if m.dead_share is not None
        and m.dead_share >= DEAD_SHARE
        and m.output
        and m.inputs
        and m.inputs[0].non_finite == 0
        and _units(m.output.shape) >= FEWEST_UNITS
    ]
    if not dead:
        return
    revived = standardise_activations(tuple(m.name for m in dead))
    outcome = yield Trial(change=revived, steps=STEPS)
    if not outcome.clearly_better:
        return
    first = dead[0]
    units, given = _units(first.output.shape) if first.output else 0, first.inputs[0]
    share, mean = first.dead_share or 0.0, given.mean or 0.0
    yield Finding(
        message=f"{share:.0%} of the {units} units of {first.name} are zero for every row of the batch; their inputs "
        f"have mean {mean:.3g} and standard deviation {given.deviation or 0.0:.3g}",
        measured={"dead_share": share, "units": units, "input_mean": mean, "input_deviation": given.deviation or 0.0},
        where=first.where or setup.place(Role.MODEL),
        proof=outcome,
        repair=revived,
        fix=Fix(
            does="center the rectifier's inputs (bias, normalization), or use LeakyReLU or GELU", safety=Safety.UNSAFE
        ),
    )


def _units(shape: tuple[int, ...]) -> int:
    return shape[1] if len(shape) == 4 else shape[-1] if shape else 0
