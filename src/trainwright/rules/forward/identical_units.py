"""TW308 identical-units: the units of a layer are identical, and training keeps them identical.

Why it matters: Units that start equal get equal gradients; a layer of 100 of them acts as one unit.
Evidence: The rows of the weight are equal before and after three steps, although a gradient arrives. A last layer, an
adapter or a gate that starts at zero has different rows by then.
Fix (safe): Draw the weights at random, or keep the layer's own initialization.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Call, Finding, Fix, Proof, Repair, Role, Safety, Seam, Severity, rule
from trainwright.stages import ForwardFacts, SetupFacts


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
        fix=Fix(does=f"initialize {first.name} at random (remove its constant initialization)", safety=Safety.SAFE),
    )


def _draw(names: tuple[str, ...]) -> Repair:
    def change(call: Call) -> Call:
        call.tensors.reinitialise(call["model"], names)
        return call

    return Repair(
        f"initialize {', '.join(names[:3])}{' and more' if len(names) > 3 else ''} at random", Seam.TRAINER, change
    )
