"""How a data set is read: how often, in which row order, and where it ends."""

from __future__ import annotations

from dataclasses import dataclass

from trainwright.core import Place

# Batches of four or more rows whose start moves by one row repeat three rows out of four. Three full cycles are no
# coincidence. If more than half of the rows are returned, a full pass may have been repeated on purpose.
PERIODIC, FEWEST_TURNS, LARGEST_SHARE = 0.75, 3, 0.5


@dataclass(frozen=True, kw_only=True)
class EpochFacts:
    """How many steps each epoch will have, if the framework counts steps rather than passes over the data."""

    epochs: int
    asked: int | None
    """Steps per epoch as set by the user; None: as many as there are batches."""
    batches: int
    """Number of batches in the first pass over the data."""
    again: int
    """Number of batches in each later pass: fewer if the data can be iterated only once."""
    steps: tuple[int, ...]
    """Number of steps in each of the first 1,000 epochs."""

    @property
    def wanted(self) -> int:
        """Total steps of these epochs if each had the requested number, or all batches."""
        return len(self.steps) * (self.asked or self.batches)


@dataclass(frozen=True, kw_only=True)
class Repetition:
    """Training rows that repeat when the data set is read by index."""

    read: int
    different: int
    every: int
    """The most frequent distance, in rows, between a row and its repetition."""
    share: float
    """Share of rows that are repeated at that distance."""
    held: int
    """Number of rows in the largest array or list that reading an item uses."""
    expression: str
    """The data set's expression for that array or list: `self.x`."""
    where: Place | None
    """The user's line at which reading an item starts."""

    @property
    def ignores_index(self) -> bool:
        """Whether rows repeat at one distance almost everywhere, while at least half of the rows are never returned."""
        periodic = self.share >= PERIODIC and self.read >= FEWEST_TURNS * self.every
        return periodic and self.different <= LARGEST_SHARE * min(self.read, self.held)


@dataclass(frozen=True, kw_only=True)
class EndlessSet:
    """A data set that repeats forever, although training iterates over it until it ends."""

    name: str
    """train or evaluation."""
    argument: str
    """The argument that would limit the number of batches, such as steps_per_epoch."""
    batches: int | None
    """Number of batches in one repetition; None if unknown."""
