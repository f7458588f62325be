"""TW214 mostly-padding: more than half of the positions in the batches are padding.

Why it matters: Padding costs nearly as much compute as real tokens and teaches nothing.
Evidence: The share of padding in the first batches.
Fix (safe): Pad each batch only to its longest row, group rows of similar length, or pack rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from trainwright.core import Finding, Fix, Role, Safety, Severity, rule
from trainwright.stages import BatchFacts, SetupFacts

# More padding than text: at least half of each step's time is wasted.
MOSTLY = 0.5
FEWEST_BATCHES = 3
# A few text tokens may be masked out on purpose.
HIDDEN_SHARE = 0.05


@rule("TW214", Severity.NOTE)
def mostly_padding(batch: BatchFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Batches with more padding than text."""
    shares, ids = batch.padding_shares, batch.tensors.get("input_ids")
    if ids is not None and batch.hidden_tokens > HIDDEN_SHARE * ids.shape[0] * ids.shape[-1]:
        return  # the mask excludes text, so it does not mark padding
    if len(shares) < FEWEST_BATCHES or fmean(shares) <= MOSTLY:
        return
    tokens = ids.shape[1] if ids is not None else 0
    yield Finding(
        message=f"{fmean(shares):.0%} of the positions of {len(shares)} batches are padding, in rows of {tokens} positions",
        measured={"padding_share": round(fmean(shares), 3), "batches": len(shares), "row_positions": tokens},
        where=setup.place(Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.COLLATOR, Role.TRAINER, Role.TRAIN_CALL),
        fix=Fix(does=setup.words.less_padding, safety=Safety.SAFE),
    )
