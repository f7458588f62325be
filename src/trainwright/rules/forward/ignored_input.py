"""TW317 ignored-input: one of the model's inputs has no effect on its output.

Why it matters: Its information is not used.
Evidence: Permuting its rows changed neither scores nor loss, even with perturbed weights.
Fix (manual): Use it in forward, or leave it out of the batch.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import ForwardFacts, SetupFacts


@rule("TW317", Severity.NOTE)
def ignored_input(forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Inputs that differ between rows but have no effect."""
    if forward.same_for_other_inputs and forward.same_when_perturbed:
        return  # none of them has any
    for name in forward.ignored_inputs:
        yield Finding(
            message=f"the model gets {name}, but its output stays the same when the rows of {name} are permuted",
            measured={"input": name},
            where=setup.place(Role.MODEL),
            proof=Proof(f"{name} was shifted by one row: neither scores nor loss changed"),
            fix=Fix(does=f"use {name} in the model's forward, or leave it out of the batch"),
        )
