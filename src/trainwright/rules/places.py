"""User lines that several rules refer to, and edits of them."""

from __future__ import annotations

from trainwright.core import Place, Role, SetKeyword
from trainwright.rules.fixes import set_keyword
from trainwright.stages import DatasetFacts, LossFacts, SetupFacts


def loss_place(loss: LossFacts, setup: SetupFacts) -> Place | None:
    """The line of the loss call; if it was not seen, the method or function that computes the loss."""
    method = next((m.where for m in setup.overrides if m.name == "compute_loss" and m.where), None)
    return loss.at or method or setup.place(Role.LOSS, Role.MODEL, Role.TRAINER)


def evaluation_place(dataset: DatasetFacts, setup: SetupFacts) -> Place | None:
    """The line that makes the evaluation set, or names it."""
    return (
        setup.place(Role.EVAL_DATASET_MADE, Role.EVAL_DATASET) or dataset.evaluation_place or setup.place(Role.TRAINER)
    )


def rename_loss(old: str, new: str, where: Place | None, setup: SetupFacts) -> tuple[SetKeyword, ...]:
    """Replace the loss's name in the compile call at a line, if it is given there as a string."""
    named = setup.arguments.get("loss")
    if where is None or named is None or named.value != old:
        return ()
    return set_keyword(where, "loss", f'"{new}"', "compile", position=1)
