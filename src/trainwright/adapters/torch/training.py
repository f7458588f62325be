"""The interface of a torch training for measurements, whether by a Trainer, Lightning or a loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from torch import nn

from trainwright.adapters.base import Training
from trainwright.core import Repair
from trainwright.probes.constant import JudgedLoss

Gradient = dict[str, np.ndarray]


@dataclass(frozen=True)
class Window:
    """The gradient of several micro-batches as training accumulates it, and that of each one alone."""

    together: Gradient
    alone: Sequence[Gradient]
    """Of the loss without division by the number of micro-batches."""
    reached: Gradient = field(default_factory=dict)
    """What the last backward pass left of it, before it was clipped, or changed by other statements; empty: unknown."""
    count: int = 0
    """How many micro-batches were accumulated, if those of `alone` came several times; 0: each of them once."""
    scale_known: bool = True
    """Whether the division is certain, so that the sizes can be compared."""


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
    """A torch training that can take steps."""

    began_clear: bool | None
    """Whether the last step taken as in training began without gradients; None: unknown."""

    @property
    def model(self) -> nn.Module:
        """The trained model."""

    @property
    def repairs(self) -> list[Repair]:
        """The repairs in force."""

    def label_of(self, batch: Any) -> Any:
        """The labels of a batch, or None."""

    def chosen_rows(self, batch: Any, rows: Sequence[int]) -> Any:
        """The same batch with only some of its rows."""

    def look(self, batch: Any, *, by_row: bool = False, training: bool = False) -> Look | None:
        """The batch in evaluation mode, without updates; None if that raised or is not possible.

        Args:
            by_row: with the loss of each row; in training mode if the loop sets that itself.
            training: in training mode; the caller restores what that changes.
        """

    def gradients_of(self, batch: Any) -> None:
        """Leave the gradients of one step in the parameters."""

    def step_as_training(self, batch: Any, *, seed: int, cleared: bool) -> Gradient:
        """The gradient with which training would update after this batch; nothing is updated.

        Args:
            cleared: clear all gradients first; False: as training goes from one step to the next.
        """

    def trained_with(self) -> Any | None:
        """The optimizer of the next update, built as training builds it; None if there is none yet."""

    def accumulate(self, batches: Sequence[Any]) -> Window | None:
        """What accumulation over these micro-batches does; None if that cannot be determined."""
