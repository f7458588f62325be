"""Parts of the dataset stage's facts: rows far from all others, and the order of labels in batches."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class BatchOrder:
    """The class labels of consecutive batches of a loop without a loader."""

    batches: int
    rows: float
    """Mean number of rows in a batch."""
    majority: float
    """Mean share of the most frequent class in a batch."""
    classes: int
    """Number of classes in all of them together."""
    most_frequent: float
    """Share of the most frequent class in all of them together."""


@dataclass(frozen=True, kw_only=True)
class Extremes:
    """A few rows whose value in a column is far from that of all other rows."""

    column: str
    feature: int | None
    """The position in rows that are vectors; None for single values and for the largest value of larger rows."""
    rows: tuple[int, ...]
    """The first of them."""
    count: int
    counted: int
    """How many rows were compared."""
    value: float
    low: float
    """The least value of the other rows."""
    high: float
    times: float
    """How many times further from the median than the furthest other row."""
    usual_loss: float | None = None
    """The loss of a step on other rows with the initial weights; None: not tried."""
    loss: float | None = None
    """The loss where such rows are in the batch."""
    failure: str = ""
    """What that step raised."""
