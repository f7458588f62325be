"""TW512 in-place-change: a tensor that backward needs is changed in place after it was used.

Why it matters: The first backward raises an error; its message gives a shape but no line.
Evidence: The shape in the message, and the last in-place call with that shape in user code.
Error: `one of the variables needed for gradient computation has been modified by an inplace operation`
Fix (safe): Make a new tensor instead: x = x + y, torch.where, or masked_fill without the trailing underscore.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.stages import GradientFacts, SetupFacts


@rule("TW512", Severity.ERROR)
def in_place_change(gradients: GradientFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A backward pass that needs a value that user code changed in place."""
    failure = gradients.failure
    if failure is None or "modified by an inplace operation" not in failure.message:
        return
    shape = _shape(failure.message)
    fitting = [c for c in gradients.in_place if c.shape == shape]
    calls = fitting or list(gradients.in_place)
    operation = calls[-1].operation if calls else "an in-place call"
    needed = f", whose value the backward of {gradients.anomaly} needs" if gradients.anomaly else ""
    yield Finding(
        message=f"{operation} changes a tensor of shape {shape or 'unknown'} in place{needed}",
        measured={"operation": operation, "shape": str(shape), "needed_by": gradients.anomaly or "unknown"},
        where=(calls[-1].where if calls else None) or gradients.anomaly_at or setup.place(Role.MODEL),
        proof=Proof(f"backward raised {failure}"[:300]),
        fix=Fix(does="make a new tensor instead of changing this one (x = x + y for x += y)", safety=Safety.SAFE),
    )


def _shape(message: str) -> tuple[int, ...] | None:
    found = re.search(r"Tensor \[([\d, ]*)\]", message)
    return tuple(int(n) for n in found.group(1).replace(" ", "").split(",") if n) if found else None
