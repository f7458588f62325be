"""One step of the user's training as runnable code: the interface through which `LoopTraining` runs it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from torch import nn

from trainwright.core.finding import Place
from trainwright.stages.words import Words


class Body(Protocol):
    """The body of a training loop. The caller decides which batch it gets and which of its effects persist."""

    framework: str
    words: Words
    automatic_steps: bool
    """Whether its framework calls backward, the optimizer and the schedule itself."""
    where: Place | None
    """The line of the loop's header."""
    steps: bool
    """Whether the body, or what it calls, contains a call of step."""
    drawn: dict[Any, Any]
    """The batches drawn from loaders, by turn."""
    keeps_draw: bool
    """Whether the body is drawing a batch that it stores for its next run with the same turn."""
    modules: list[nn.Module]
    """Modules that it trains, if they are known beforehand."""

    clears_between_passes: bool
    """Whether the gradients are cleared before each pass of the loop."""

    @property
    def places(self) -> Mapping[str, Place]:
        """The user's lines that the body itself knows, by role (stages.setup.SetupFacts.places)."""

    @property
    def draws(self) -> bool:
        """Whether the body draws its batch itself, so that what it iterates over is not data."""

    @property
    def scope(self) -> Mapping[str, Any]:
        """The user's objects by name, as far as the body and its callers can name them."""

    def items(self) -> Iterator[Any]:
        """What the loop iterates over, restarted."""

    def item(self, drawn: Any, count: int) -> Any:
        """An item as the loop would yield it the `count`-th time (from 0)."""

    def rounds_left(self, count: int) -> int | None:
        """How many rounds the loop's pass still has when it has made `count`; None: it goes on."""

    def batch_of(self, drawn: Any) -> Any:
        """The batch in a loop item, without `enumerate`'s number."""

    def with_batch(self, drawn: Any, batch: Any) -> Any:
        """The loop item with another batch."""

    def run(self, item: Any, turn: int) -> None:
        """Run the body once.

        Args:
            turn: the number of the batch; a batch that the body draws itself is drawn once per turn.
        """

    def variables(self) -> dict[str, Any]:
        """The body's current variables; the next run reads values written here."""

    def place_of_variable(self, name: str) -> Place | None:
        """The line of the body that assigns a variable."""

    def keep(self) -> None:
        """Make the current values of its variables those that `start_over` restores."""

    def start_over(self) -> None:
        """Restore the values of its variables from which training starts."""

    def updates_planned(self, training: Any) -> int | None:
        """How many updates the real training would make."""

    def epochs(self) -> int | None:
        """How many times training goes through the data; None if unknown."""

    def schedule_pace(self, training: Any) -> float:
        """How many times a schedule steps per update: 1, less if it steps once per epoch, 0 for never."""
