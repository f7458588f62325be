"""Single rows as the model received them, readable, with what it answered."""

from __future__ import annotations

from dataclasses import dataclass

# What a span of text is: read and counted in the loss; a special token; padding; or not counted in the loss.
ORDINARY, SPECIAL, PADDING, MASKED = "", "special", "padding", "masked"
# What is said of the rows for which the loss is highest.
WORST = "highest loss"
# And of a row that broke a training.
NOT_FINITE = "holds a number that is not finite"
# Why rows are kept that are shown only where a finding speaks of them: rows that are equal to others with another label, and
# with its number one of each class.
TORN, OF_CLASS = "equal to a row with another label", "class"


@dataclass(frozen=True, kw_only=True)
class Span:
    """A piece of text."""

    text: str
    kind: str = ORDINARY


@dataclass(frozen=True, kw_only=True)
class SamplePart:
    """One input of a row."""

    name: str
    """Empty: the only one."""
    form: str
    """`text`, `table`, `picture`, `series`, `wave` or `numbers`."""
    note: str = ""
    """Its shape, what was undone, and how much is not shown."""
    spans: tuple[Span, ...] = ()
    """Of a text."""
    names: tuple[str, ...] = ()
    """Of a table: its columns, and below their values."""
    values: tuple[float, ...] = ()
    lines: tuple[tuple[float, ...], ...] = ()
    """Of a series or a wave."""
    picture: str = ""
    """A PNG as a data URI."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One row with its label and what was answered."""

    rows_of: str
    """`held-out` or `training`."""
    output: str
    """Which output it is of; empty if there is one only."""
    why: tuple[str, ...]
    """Why this row was chosen: `at random`, `longest`, `highest loss` and so on."""
    row: int | None
    """Its number in the set; None: not known."""
    update: int
    """After how many updates it was answered."""
    inputs: tuple[SamplePart, ...]
    label: str
    answer: str
    probability: float | None = None
    """Of the answer."""
    right: bool | None = None
    """None: an answer that is neither right nor wrong."""
    loss: float | None = None
    target: tuple[Span, ...] = ()
    """The labels of a row that has many, as text; those that do not count are left out."""


@dataclass(frozen=True, kw_only=True)
class GeneratedText:
    """What a language model made of the beginning of a row, at the end of the run."""

    rows_of: str
    """`held-out` or `training`."""
    row: int | None
    """Its number in the set; None: not known."""
    update: int
    prompt: str
    text: str
    """What was generated."""
    expected: str
    """How the row goes on, or the text that it has as label."""


@dataclass(frozen=True, kw_only=True)
class ConfusedRow:
    """How often the rows of one class got each answer."""

    output: str
    label: str
    answers: tuple[str, ...]
    counts: tuple[int, ...]
