"""TW311 saturated-units: a sigmoid or tanh is saturated.

Why it matters: Near the ends of its range, its slope is below 0.01, so the layers before it get almost no gradient.
Evidence: The share of values within 0.01 of an end of the range, with inputs of an ordinary scale. With its inputs
scaled to a standard deviation of one or two, the batch is learned clearly better.
Fix (unsafe): Use smaller weights before it, normalization, or ReLU or GELU.
"""

from __future__ import annotations

from trainwright.core import Diagnosis, Finding, Fix, Role, Safety, Severity, Trial, rule
from trainwright.rules.repairs import standardise_activations
from trainwright.stages import BatchFacts, ForwardFacts, SetupFacts

# For inputs with deviation 1, no sigmoid value is that close to the ends of its range, and under 1 % of tanh values.
SATURATED_SHARE = 0.7
# A sigmoid bends at twice the values at which a tanh does: s(x) = (1 + tanh(x / 2)) / 2.
USUAL_DEVIATION = {"Tanh": 1.0, "Sigmoid": 2.0}
# Larger inputs are unscaled features or pixels: a fault of the data, reported by the dataset rules.
ORDINARY_INPUT = 10.0


@rule("TW311", Severity.ERROR)
def saturated_units(forward: ForwardFacts, batch: BatchFacts, setup: SetupFacts) -> Diagnosis:
    """A saturated sigmoid or tanh; scaling its inputs makes the batch learnable."""
    if any(
        t.is_float and max(abs(t.minimum or 0), abs(t.maximum or 0)) > ORDINARY_INPUT
        for k, t in batch.tensors.items()
        if k != batch.label_key
    ):
        return
    pinned = [
        m
        for m in forward.modules
        if m.kind in ("Sigmoid", "Tanh") and (m.saturated_share or 0) >= SATURATED_SHARE and m.inputs
    ]
    if not pinned:
        return
    usual = USUAL_DEVIATION[pinned[0].kind]
    scaled = standardise_activations(tuple(m.name for m in pinned), usual)
    outcome = yield Trial(change=scaled)
    if not outcome.clearly_better:
        return
    first, share = pinned[0], pinned[0].saturated_share or 0.0
    least, most = first.inputs[0].minimum or 0.0, first.inputs[0].maximum or 0.0
    yield Finding(
        message=f"{share:.0%} of the outputs of {first.name} ({first.kind}) are within 0.01 of its limits; its inputs range "
        f"from {least:.3g} to {most:.3g}",
        measured={"saturated_share": share, "smallest_input": least, "largest_input": most},
        where=first.where or setup.place(Role.MODEL),
        proof=outcome,
        repair=scaled,
        fix=Fix(
            does=f"initialize the layer before {first.name} with smaller weights, or normalize its outputs",
            safety=Safety.UNSAFE,
        ),
    )
