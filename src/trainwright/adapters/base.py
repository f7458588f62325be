"""What a training loop must offer so that it can be walked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from trainwright.core.finding import Failure
from trainwright.core.repair import Repair
from trainwright.core.stage import Facts
from trainwright.stages.batch import BatchFacts
from trainwright.stages.dataset import DatasetFacts
from trainwright.stages.evaluation import EvaluationFacts
from trainwright.stages.optimizer import OptimizerFacts
from trainwright.stages.setup import SetupFacts


@dataclass(frozen=True, kw_only=True)
class Run:
    """Some training steps that were taken: one loss a step, the first before any update."""

    losses: tuple[float, ...] = ()
    rows: int = 0
    failure: Failure | None = None
    predictions: tuple[int, ...] = ()
    """Predicted classes of the rows at the end, for a classification."""
    labels: tuple[int, ...] = ()
    seconds: float = 0.0
    constant: float | None = None
    """The loss of the best constant prediction on these rows, where it is known."""
    floor: float = 0.0
    """The least loss that any prediction can have on these rows (label smoothing, soft targets)."""
    skipped: str = ""
    """Why no steps were taken, where such a run says nothing of this training."""
    evaluated: float | None = None
    """The loss of the same rows at the end, in evaluation mode."""


@dataclass(kw_only=True)
class ActiveRepairs:
    """Repairs in force: those that stay, and those of the experiment that runs."""

    kept: list[Repair] = field(default_factory=list)
    tried: list[Repair] = field(default_factory=list)

    @property
    def all(self) -> list[Repair]:
        """In the order in which they are applied."""
        return [*self.kept, *self.tried]


class Record(Protocol):
    """What a step leaves."""

    failure: Failure | None
    loss: float | None


class Training(Protocol):
    """A training whose steps can be taken with repairs in force; a batch is whatever it calls one."""

    active: ActiveRepairs

    def take(self, count: int, *, seed: int) -> list[Any]:
        """Some of the first batches; one is among those with most classes."""

    def rows_of(self, batch: Any) -> int:
        """How many rows it holds."""

    def reset(self) -> None:
        """Back to the weights from which training would start."""

    def ready(self, seed: int) -> AbstractContextManager[None]:
        """Prepare the model as training does, with seeded random numbers."""

    def build_optimizer(self) -> None:
        """Make the optimizer as training would, with the repairs in force."""

    def take_step(self, batch: Any, number: int) -> Record:
        """One step with its update; what it raised is in the record."""

    def loss_of(self, batch: Any) -> float:
        """The loss of a batch from the weights at the start, always with the same random numbers.

        Raises:
            Exception: whatever the step raised.
        """

    def apply(self, repair: Repair) -> None:
        """Keep a repair in force from now on.

        Raises:
            Exception: whatever its change raised; it is then not in force.
        """

    def put_back(self) -> None:
        """Undo everything since the training was met."""


class Adapter(Protocol):
    """One training, seen as something whose parts can be called. Nothing that it does outlives `put_back`."""

    framework: str

    def measure_setup(self) -> SetupFacts:
        """The arguments, places and devices of the training that is about to start."""

    def measure_dataset(self) -> DatasetFacts:
        """Read a sample of the data and a census of its labels."""

    def measure_batch(self) -> BatchFacts:
        """Form the first batches as training would."""

    def measure_step(self) -> tuple[Facts | None, ...]:
        """Take one observed step without an update: the facts of forward, loss and gradients, and of the setup where
        they are others than before; what follows a stage that raised is None."""

    def measure_optimizer(self) -> OptimizerFacts:
        """Make one update, and dry-run the schedule."""

    def measure_evaluation(self, batches: int) -> EvaluationFacts:
        """Run the user's own evaluation and metrics over some batches."""

    def train(
        self,
        *,
        steps: int,
        batches: int,
        seed: int,
        changes: Sequence[Repair] = (),
        seconds: float = 30.0,
        enough: float = 0.0,
    ) -> Run:
        """From the weights at the start, take steps over the same batches in turn; then put the weights back.

        Args:
            batches: how many batches; 1 is the one that holds most classes. The seed chooses which.
            changes: repairs in force for this run only.
            seconds: stop earlier after this long.
            enough: stop earlier once the mean loss over all batches is at most this share of the first step's.
        """

    def apply(self, repair: Repair) -> None:
        """Keep a repair in force from now on.

        Raises:
            Exception: whatever its change raised; it is then not in force.
        """

    def put_back(self) -> None:
        """Undo everything since the adapter was made."""


Scope = Mapping[str, Any]
