"""TW907 stale-batch-statistics: the model predicts well in training mode, and like a constant in evaluation mode.

Why it matters: The training loss falls, and the evaluation shows nothing of it; so will the model in use.
Evidence: After the planned training, the same rows with the same weights have a loss well below a constant prediction's in
training mode, and none below it in evaluation mode.
Fix (manual): Normalization uses running averages in evaluation mode that have not caught up: raise its momentum's share of
new batches, train longer, use larger batches, or LayerNorm or GroupNorm instead. Or forward itself treats
the two modes differently.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Severity, rule
from trainwright.stages import ForwardFacts, LearningFacts, SetupFacts

# How far the loss must be below the constant's in training mode, as a share of it.
LEARNED_SHARE = 0.2


@rule("TW907", Severity.WARNING, residual=True)
def stale_batch_statistics(learning: LearningFacts, forward: ForwardFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Rows that are predicted in training mode only."""
    seen, trained = learning.in_training_mode, learning.trained
    if seen is None or trained is None or not learning.had_its_chance or not learning.at_constant:
        return
    if not seen.below or seen.share < LEARNED_SHARE:
        return
    norms = [m for m in forward.modules if "BatchNorm" in m.kind or m.kind == "BatchNormalization"]
    named = f" ({norms[0].name} is the first of {len(norms)} batch normalizations)" if norms else ""
    yield Finding(
        message=f"after {trained.updates:,} updates the same rows have a loss of {seen.loss:.4g} in training mode and of "
        f"{trained.loss:.4g} in evaluation mode; a constant prediction has {trained.constant:.4g}{named}",
        measured={"training_mode": seen.loss, "evaluation_mode": trained.loss, "constant": trained.constant},
        where=(norms[0].where if norms else None) or setup.place(Role.MODEL, Role.TRAINER),
        proof=Proof("the same rows and the same weights; only the mode differs"),
        fix=Fix(
            does="let the running averages follow the batches: a larger share of new batches in momentum, larger batches, or "
            "LayerNorm or GroupNorm instead"
            if norms
            else "look at what forward does differently in evaluation mode"
        ),
    )
