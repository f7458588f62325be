"""TW508 wiped-accumulation: the gradients are cleared inside the accumulation window.

Why it matters: each update uses the last micro-batch alone; the others are computed and thrown away.
Evidence: a window is taken as training takes it; what was accumulated is the last micro-batch's gradient alone.
Fix (safe): clear the gradients after the update only (the Trainer does), not at each micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core.finding import Finding, Proof, Severity
from trainwright.core.fix import Fix, Safety
from trainwright.core.rule import rule
from trainwright.stages.gradients import GradientFacts
from trainwright.stages.setup import SetupFacts


@rule("TW508", Severity.ERROR)
def wiped_accumulation(gradients: GradientFacts, setup: SetupFacts) -> Iterator[Finding]:
    """A window of micro-batches of which only the last is left."""
    if not gradients.only_last:
        return
    count, planned = gradients.accumulated_batches, gradients.accumulation
    yield Finding(
        message=f"of {count} micro-batches only the last one's gradient is left at the update; "
        f"an update is to hold those of all {planned}",
        measured={"micro_batches": count, "accumulation": planned},
        where=setup.place(
            "clear_call", "training_step", "compute_loss", "gradient_accumulation_steps", "trainer"
        ),
        proof=Proof(
            f"the accumulated gradient is that of micro-batch {count} to within 0.1 %, and micro-batch 1 has another"
        ),
        fix=Fix(
            does="clear the gradients once for each update, after it, and not for each micro-batch",
            safety=Safety.SAFE,
        ),
    )
