"""Lightning: its Trainer knows the line that calls for the training."""

from __future__ import annotations

from dataclasses import replace
from types import FrameType
from typing import Any

from trainwright.adapters.torch.words import LIGHTNING
from trainwright.look.of_loop import LoopTraining
from trainwright.look.state import Look
from trainwright.seams.source.places import place_of
from trainwright.stages import SetupFacts


class LightningTraining(LoopTraining):
    """A training that Lightning's Trainer makes."""

    def __init__(self, frame: FrameType) -> None:
        self._frame = frame

    def measure_setup(self, look: Look, optimizers: list[Any], schedules: list[Any]) -> SetupFacts:
        facts, where = super().measure_setup(look, optimizers, schedules), place_of(self._frame)
        return replace(
            facts,
            framework="lightning",
            words=LIGHTNING,
            automatic_steps=bool(getattr(look.model, "automatic_optimization", False)),
            places={**facts.places, "train_call": where, "trainer": where},
        )
