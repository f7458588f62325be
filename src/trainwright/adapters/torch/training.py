"""What a training of torch's offers to be measured, however it is written: by a Trainer, Lightning or a loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from torch import nn

from trainwright.adapters.base import Training
from trainwright.core.finding import Failure
from trainwright.core.repair import Repair
from trainwright.probes.constant import JudgedLoss

Gradient = dict[str, np.ndarray]


@dataclass(frozen=True)
class Window:
    """The gradient of some micro-batches as training accumulates it, and that of each by itself."""

    together: Gradient
    alone: Sequence[Gradient]
    """Of the loss as it is without division by the number of micro-batches."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """A batch in evaluation mode, after a run."""

    loss: float
    losses: list[JudgedLoss]
    scores: Any
    """(rows, classes), or None."""
    labels: Any
    """(rows), or None."""


class TorchTraining(Training, Protocol):
    """A training of torch's whose steps can be taken."""

    began_clear: bool | None
    """Whether the last step that was taken as in training began without gradients; None: that is not known."""

    @property
    def model(self) -> nn.Module:
        """What is trained."""

    @property
    def repairs(self) -> list[Repair]:
        """Those in force."""

    def label_of(self, batch: Any) -> Any:
        """The labels of a batch, or None."""

    def chosen_rows(self, batch: Any, rows: Sequence[int]) -> Any:
        """The same batch with some of its rows only."""

    def look(self, batch: Any) -> Look | None:
        """The batch in evaluation mode, nothing updated; None where that raised or cannot be had."""

    def second_step(self, batch: Any) -> Failure | None:
        """What a step after a first one raises."""

    def gradients_of(self, batch: Any) -> None:
        """Leave the gradients of one step in the parameters."""

    def step_as_training(self, batch: Any, *, seed: int, cleared: bool) -> Gradient:
        """The gradient with which training would update after this batch; nothing is updated.

        Args:
            cleared: clear all gradients first; False: as training goes from one step to the next.
        """

    def accumulate(self, batches: Sequence[Any]) -> Window | None:
        """What accumulation over these micro-batches does; None where that cannot be told."""
