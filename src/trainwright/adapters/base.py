"""What the adapters share: steps that are taken again."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from trainwright.core import Failure, Repair
from trainwright.probes.constant import JudgedLoss
from trainwright.stages.overfit import Hits


@dataclass(frozen=True, kw_only=True)
class Train:
    """A request for steps from the initial weights that cycle through the same batches; the answer is a ShortRun."""

    steps: int
    batches: int
    """1 is the one with the most classes. The seed chooses which."""
    seed: int
    changes: tuple[Repair, ...] = ()
    """Repairs in force for this run only."""


@dataclass(frozen=True, kw_only=True)
class ShortRun:
    """The record of a short run: one loss per step, the first before any update."""

    losses: tuple[float, ...] = ()
    rows: int = 0
    failure: Failure | None = None
    predictions: tuple[int, ...] = ()
    """For classification, the predicted classes of the rows at the end."""
    labels: tuple[int, ...] = ()
    hits: Hits | None = None
    """How many answers are right at the end, in evaluation mode: of rows, positions or labels."""
    seconds: float = 0.0
    constant: float | None = None
    """The loss of the best constant prediction on these rows, if it is known."""
    floor: float = 0.0
    """The lowest loss that any prediction can reach on these rows (label smoothing, soft targets)."""
    skipped: str = ""
    """Why no steps were taken, if such a run would be meaningless for this training."""
    evaluated: float | None = None
    """The loss of the same rows at the end, in evaluation mode."""


@dataclass(kw_only=True)
class ActiveRepairs:
    """Repairs in force: the permanent ones and those of the current experiment."""

    kept: list[Repair] = field(default_factory=list)
    tried: list[Repair] = field(default_factory=list)

    @property
    def all(self) -> list[Repair]:
        """All repairs, in the order in which they are applied."""
        return [*self.kept, *self.tried]


class StepResult(Protocol):
    """The result of one step."""

    failure: Failure | None
    loss: float | None


@dataclass(frozen=True, kw_only=True)
class EvaluatedBatch:
    """A batch in evaluation mode."""

    loss: float
    losses: list[JudgedLoss]
    """The loss calls that it is made of."""


class StepTaker(Protocol):
    """A training that can take steps with repairs in force; it defines what a batch is."""

    active: ActiveRepairs

    def take(self, count: int, *, seed: int) -> list[Any]:
        """Some of the first batches; a single one is among those with the most classes."""

    def rows_of(self, batch: Any) -> int:
        """The number of rows in the batch."""

    def reset(self) -> None:
        """Restore the weights from which training starts."""

    def ready(self, seed: int) -> AbstractContextManager[None]:
        """Prepare the model as training does, with seeded random numbers."""

    def build_optimizer(self) -> None:
        """Build the optimizer as training does, with the repairs in force."""

    def take_step(self, batch: Any, number: int) -> StepResult:
        """Take one step with its update; the record includes an exception that it raised."""

    def evaluate(self, batch: Any) -> EvaluatedBatch | None:
        """The batch in evaluation mode, without an update; None if that raised."""
