"""The ten stages of a training pipeline, in the order in which they are walked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar


class Stage(IntEnum):
    """A stage of the pipeline; its number is the hundreds digit of its rules' codes."""

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

    @property
    def label(self) -> str:
        """Its name as shown to users."""
        return self.name.lower()


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The measurements of one stage: plain data, no tensors, no framework objects.

    A rule names the subclasses it needs in its signature and runs as soon as they exist.
    """

    stage: ClassVar[Stage]
