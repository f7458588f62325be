"""TW428 column-labels: a class loss gets its labels as a column (N, 1), but it expects shape (N,).

Why it matters: The loss takes the second dimension for classes or positions, and stops with a message about multiple
targets.
Evidence: The two shapes at the loss call; with the labels in shape (N,) the loss succeeds.
Error: `0D or 1D target tensor expected, multi-target not supported`
Fix (safe): Write targets.squeeze(-1) in the loss.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.rules.shapes import Misfit, align, measured_of, message_of, misfitting, proof_of
from trainwright.stages import ForwardFacts, LossFacts, SetupFacts


@rule("TW428", Severity.ERROR, after="TW407")
def column_labels(loss: LossFacts, setup: SetupFacts, forward: ForwardFacts | None = None) -> Iterator[Finding]:
    """Labels (N, 1) for scores (N, C)."""
    found = misfitting(loss, forward)
    if found is None or found.kind != Misfit.COLUMN:
        return
    call = found.call
    yield Finding(
        message=message_of(call),
        measured=measured_of(call),
        where=call.at or loss.at or setup.place(Role.MODEL),
        proof=Proof(proof_of(call)),
        repair=align(call.function),
        fix=Fix(does="write targets.squeeze(-1) in the loss", safety=Safety.SAFE),
    )
