"""How a data set is read: how often, in which order of rows, and where it ends."""

from __future__ import annotations

from dataclasses import dataclass

from trainwright.core.finding import Place

# An index that moves a batch of four rows or more by one row repeats three rows of four; so many turns are no chance, and
# with more than half of the rows one turn over all of them may have been repeated by design.
PERIODIC, FEWEST_TURNS, LARGEST_SHARE = 0.75, 3, 0.5


@dataclass(frozen=True, kw_only=True)
class EpochFacts:
    """How many steps the epochs will have, where the framework goes over the data by number of steps."""

    epochs: int
    asked: int | None
    """Steps in an epoch, as the user gave them; None: as many as the data have."""
    batches: int
    """In one pass over the data."""
    again: int
    """In a later pass: fewer where the data can be gone over only once."""
    steps: tuple[int, ...]
    """How many steps each epoch will have, the first 1,000."""

    @property
    def wanted(self) -> int:
        """Steps of these epochs, if each had what was asked for, or all the data."""
        return len(self.steps) * (self.asked or self.batches)


@dataclass(frozen=True, kw_only=True)
class SpentIterator:
    """An iterator that a loop goes over in each of several epochs, and that is empty after the first."""

    name: str
    """As the script calls it."""
    kind: str
    epochs: int
    where: Place | None
    """The line that makes it."""


@dataclass(frozen=True, kw_only=True)
class Repetition:
    """Training rows that come again and again as the data set is read by index."""

    read: int
    different: int
    every: int
    """A row is most often repeated so many rows later."""
    share: float
    """The share of rows that are repeated at that distance."""
    held: int
    """Rows of the largest array or list that reading an item uses."""
    expression: str
    """How the data set's code reaches it: `self.x`."""
    where: Place | None
    """The user's line that begins the reading of an item."""

    @property
    def ignores_index(self) -> bool:
        """Whether rows come again at one distance nearly everywhere, and most of what is held never comes."""
        periodic = self.share >= PERIODIC and self.read >= FEWEST_TURNS * self.every
        return periodic and self.different <= LARGEST_SHARE * min(self.read, self.held)


@dataclass(frozen=True, kw_only=True)
class EndlessSet:
    """A set that gives batches without end, gone over until it ends."""

    name: str
    """train or evaluation."""
    argument: str
    """What would say how many batches are taken of it: steps_per_epoch."""
    batches: int | None
    """In one pass over what it repeats; None: not known."""
