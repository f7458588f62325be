"""What is needed of a training, beside its steps, to judge its learning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from trainwright.core.finding import Place
from trainwright.probes.row_losses import LossRows


@dataclass(frozen=True)
class Judged:
    """The loss of a batch."""

    total: float
    calls: Sequence[LossRows]
    """The loss calls that it is made of."""


@dataclass(frozen=True, kw_only=True)
class Passed:
    """One batch along its forward pass."""

    given: Mapping[str, np.ndarray]
    """What the model is given, by the argument's name: (rows, …)."""
    results: Sequence[Result]
    losses: Sequence[LossRows]


class Result(Protocol):
    """The rows of one result of the forward pass, and what made it."""

    @property
    def name(self) -> str:
        """A module's path, or an operation."""

    @property
    def module(self) -> str:
        """The path of the module in which it was made."""

    @property
    def kind(self) -> str:
        """The module's class; empty for an operation."""

    @property
    def where(self) -> Place | None:
        """The user's line."""

    @property
    def values(self) -> np.ndarray | None:
        """(rows, features); None if it was passed over."""


class Trained(Protocol):
    """What is needed of a training to judge what it has learned."""

    def fresh(self, most: int, seconds: float) -> list[Any]:
        """The batches of an epoch as training draws them, at most this many."""

    def held_out(self, rows: int, seconds: float) -> list[Any]:
        """Batches of the evaluation set with about this many rows, in the form of training batches; may be empty."""

    def digests(self, batch: Any) -> list[int] | None:
        """A hash of each row of a batch; None if it has no rows."""

    def passed(self, batch: Any, chosen: frozenset[int] | None) -> Passed | None:
        """The rows of a batch along its forward pass in evaluation mode, with what the loss is given.

        Args:
            chosen: the numbers of the results to keep; None: as many as there may be.
        """

    def judged(self, batch: Any, *, training: bool = False) -> Judged | None:
        """The loss calls of a batch, leaving everything as it was; None if that is not possible.

        Args:
            training: in training mode instead of evaluation mode.
        """
