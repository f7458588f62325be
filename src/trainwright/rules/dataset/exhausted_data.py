"""TW117 exhausted-data: the data ends before steps_per_epoch x epochs, or can be iterated only once.

Why it matters: Epochs are cut short with only a warning. If steps_per_epoch is set, a pass over the data continues from
one epoch to the next, and the epoch in which the data runs out ends there. With 469 batches and 468 steps per epoch,
every second epoch has only one step. A Python generator is empty after its first pass, so later epochs get its first
two batches again, or nothing.
Evidence: The number of batches in one pass, and the number of steps in each epoch. In a loop: every epoch uses the same
iterator, which was created before the first epoch.
Error: `Your input ran out of data; interrupting training`
Fix (safe): Leave out steps_per_epoch, or repeat the data set (`.repeat()`, or a generator that starts over).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainwright.core import Finding, Fix, Proof, Role, Safety, Severity, rule
from trainwright.stages import DatasetFacts, EpochFacts, SetupFacts

# An incomplete last batch, or a few batches because steps_per_epoch was rounded up, do not matter.
LOST_SHARE = 0.05


@rule("TW117", Severity.WARNING)
def exhausted_data(dataset: DatasetFacts, setup: SetupFacts) -> Iterator[Finding]:
    """Fewer steps than requested, or than the epochs would have with one pass each."""
    epochs = dataset.epochs
    if epochs is None or not epochs.wanted:
        return
    lost = epochs.wanted - sum(epochs.steps)
    if lost <= LOST_SHARE * epochs.wanted:
        return
    shown = ", ".join(map(str, epochs.steps[:6])) + (", …" if len(epochs.steps) > 6 else "")
    asked = f"{epochs.asked} steps per epoch" if epochs.asked else f"{epochs.batches} batches per epoch"
    yield Finding(
        message=f"{_ending(epochs)}: the epochs will have {shown} steps, {sum(epochs.steps)} in total instead of "
        f"{epochs.wanted} ({len(epochs.steps)} x {asked})",
        measured={
            "batches": epochs.batches,
            "asked": epochs.asked or epochs.batches,
            "epochs": epochs.epochs,
            "steps": sum(epochs.steps),
            "wanted": epochs.wanted,
        },
        where=setup.place(Role.STEPS_PER_EPOCH, Role.TRAIN_DATASET_MADE, Role.TRAIN_DATASET, Role.TRAIN_CALL),
        proof=Proof(f"one pass over the data gave {epochs.batches} batches"),
        fix=_fix(epochs),
    )


def _ending(epochs: EpochFacts) -> str:
    if epochs.again < epochs.batches:
        return f"the data can be iterated only once and ends after {epochs.batches} batches"
    return f"one pass over the data has {epochs.batches} batches, but an epoch has {epochs.asked} steps"


def _fix(epochs: EpochFacts) -> Fix:
    if epochs.again < epochs.batches:
        does = "let the generator start over when it ends (while True) and set steps_per_epoch; or pass a data set"
    else:
        does = "leave out steps_per_epoch, or repeat the data (.repeat())"
    return Fix(does=does, safety=Safety.SAFE)
