"""The stages of a training pipeline, in the order in which they are checked, and the rehearsal of the whole."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class Stage(IntEnum):
    """A stage of the pipeline; its number is the hundreds of its rules' codes."""

    SETUP = 0
    DATASET = 1
    BATCH = 2
    FORWARD = 3
    LOSS = 4
    GRADIENTS = 5
    OPTIMIZER = 6
    EVALUATION = 7
    OVERFIT = 8
    BASELINE = 9
    REHEARSAL = 10
    """The script's own run, seen as a whole."""

    @property
    def label(self) -> str:
        """Its name as shown to users."""
        return self.name.lower()


class Facts:
    """The measurements of one stage: plain data, no tensors, no framework objects.

    A rule names the subclasses it needs in its signature and runs as soon as they exist.
    """

    stage: ClassVar[Stage]


FactsByKind = dict[type[Facts], Facts]
"""The facts of a training's stages, by their class."""

RULE_STAGES = tuple(stage for stage in Stage if stage != Stage.REHEARSAL)
"""The stages of a check."""
