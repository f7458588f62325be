"""Lines of the user's that several rules name."""

from __future__ import annotations

from trainwright.core.finding import Place
from trainwright.stages.loss import LossFacts
from trainwright.stages.setup import SetupFacts


def loss_place(loss: LossFacts, setup: SetupFacts) -> Place | None:
    """The line of the loss call; where it was not seen, the method or function that computes the loss."""
    method = next((m.where for m in setup.overrides if m.name == "compute_loss" and m.where), None)
    return loss.at or method or setup.place("loss", "model", "trainer")
