"""TW419 missing-loss: fit is called on a model that was compiled without a loss, and nothing else computes one.

Why it matters: Some backends stop at their first step. On JAX, training runs to the end, with a loss of 0 that looks
like a success and gradients of 0 that change nothing.
Evidence: compile got no loss, no step calls a loss, no layer adds one, and no method of the model's class computes one.
Error: `No loss to compute`
Error: `No loss found`
Fix (manual): Compile with a loss.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Fate, Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import BatchFacts, LossFacts, SetupFacts


@rule("TW419", Severity.ERROR, foretells=Fate.STOPS)
def missing_loss(loss: LossFacts, batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A step that computes nothing to minimize."""
    if not loss.computed_by_nothing or loss.value:
        return
    seen = f"a step raises {loss.failure.type}" if loss.failure else "the loss of a step is 0, and so is every gradient"
    yield Finding(
        message=f"compile was called without a loss, and nothing else computes one: {seen}",
        measured={"loss": loss.value if loss.value is not None else "none", "target": batch.label_key or "none"},
        where=setup.place(Role.COMPILE, Role.TRAIN_CALL),
        proof=Proof("a step computed no loss, neither a compiled one nor one added by a layer"),
        fix=Fix(does=setup.words.given_loss),
    )
