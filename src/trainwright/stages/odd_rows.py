"""The extreme rows of the sets, and what a training or evaluation step on each comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainwright.core import Facts, Stage


@dataclass(frozen=True, kw_only=True)
class OddRow:
    """A row that is extreme in one of its columns."""

    row: int
    column: str
    """"" if the row as a whole is meant."""
    why: str
    """What is extreme: "the largest value, 1e+09"."""


@dataclass(frozen=True, kw_only=True)
class SourceCell:
    """Where a row came from: a table of the script, and the file that the table was read from."""

    expression: str
    """The script's expression for the table."""
    row: int
    """The table's row, counted from 0."""
    column: str = ""
    """"" if no single column is known to be at fault."""
    value: str = ""
    file: str = ""
    line: int | None = None
    """The file's line, counted from 1; None: no file is known, or its lines are not its rows."""


@dataclass(frozen=True, kw_only=True)
class BadRow:
    """A row on which a step fails, although the same step on other rows does not."""

    split: str
    odd: OddRow
    evaluated: bool = False
    """The step evaluates; False: it trains."""
    failure: str = ""
    """What the step raises with this row in its batch."""
    loss: float | None = None
    """Its loss."""
    usual_loss: float | None = None
    """The largest loss of a few batches of other rows."""
    cell: SourceCell | None = None


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How much of a set was read in search of extreme rows."""

    read: int
    rows: int | None
    """None: unknown, because the set is a stream that did not end."""


@dataclass(frozen=True, kw_only=True)
class OddRowFacts(Facts):
    """Steps on the extreme rows of each set, from the initial weights."""

    stage = Stage.OVERFIT
    readings: Mapping[str, Reading] = field(default_factory=dict)
    """By set."""
    bad: tuple[BadRow, ...] = ()
