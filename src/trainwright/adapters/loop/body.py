"""One training step of the user's as code that can be run: what the loop driver needs of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from torch import nn

from trainwright.core.finding import Place
from trainwright.stages.words import Words


class Body(Protocol):
    """The body of a training loop. Whoever runs it decides which batch it gets and what of its doing stands."""

    framework: str
    words: Words
    automatic_steps: bool
    """Its framework calls backward, the optimizer and the schedule itself."""
    where: Place | None
    """The loop's head."""
    steps: bool
    """The body, or what it calls, has a call of step."""
    drawn: dict[Any, Any]
    """What it drew from loaders, by turn."""
    keeps_draw: bool
    """The body is drawing a batch that it keeps by itself, for its next run with the same turn."""
    modules: list[nn.Module]
    """Modules that it trains, where these are known beforehand."""

    @property
    def places(self) -> Mapping[str, Place]:
        """The user's lines that the body knows of by itself, by role (stages.setup.SetupFacts.places)."""

    @property
    def draws(self) -> bool:
        """Whether the body draws its batch itself, so that what it goes over is no data."""

    @property
    def scope(self) -> Mapping[str, Any]:
        """The user's objects by name, as far as the body and its callers can name them."""

    def items(self) -> Iterator[Any]:
        """What the loop goes over, begun anew."""

    def item(self, drawn: Any, count: int) -> Any:
        """An item as the loop would hand it out the `count`-th time (from 0)."""

    def batch_of(self, drawn: Any) -> Any:
        """The batch in what the loop goes over: without the number that `enumerate` gives it."""

    def with_batch(self, drawn: Any, batch: Any) -> Any:
        """What the loop goes over, with another batch."""

    def run(self, item: Any, turn: int) -> None:
        """Run it once.

        Args:
            turn: the number of the batch: what the body draws by itself is drawn once for each.
        """

    def variables(self) -> dict[str, Any]:
        """Its variables as they stand; what is written here is read by the next run."""

    def place_of_variable(self, name: str) -> Place | None:
        """The line of the body that assigns a variable."""

    def keep(self) -> None:
        """From now on, the values that its variables have are those to start over with."""

    def start_over(self) -> None:
        """Give its variables the values from which training would start."""

    def updates_planned(self, training: Any) -> int | None:
        """How many updates the real training would make."""

    def epochs(self) -> int | None:
        """How often the data are gone through; None where that is not known."""

    def schedule_pace(self, training: Any) -> float:
        """How often a schedule is moved on for each update: 1, less where that is done once an epoch, 0 for never."""
