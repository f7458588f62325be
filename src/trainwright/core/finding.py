"""A finding: a fault with its name, measurements, place, proof and fix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from trainwright.core import cells
from trainwright.core.fix import Fix
from trainwright.core.repair import Repair
from trainwright.core.stage import Facts, Stage
from trainwright.core.trial import Outcome

Number = float | int | str
# How the last line of a traceback begins.
_ERROR = re.compile(r"[\w.]*(?:Error|Exception|Warning|Interrupt)\b")


class Severity(StrEnum):
    """How serious a finding is. Errors and warnings are proven; a note is merely unusual."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Place:
    """A line of the user's code."""

    file: str
    line: int
    cell: int | None = None
    """The notebook cell in which the line is counted; None: it is counted in the file's text."""

    def in_cell(self) -> Place:
        """The same place, as a line of its cell if it is in a notebook."""
        found = cells.cell_of(self.file, self.line) if self.cell is None else None
        return Place(self.file, found[1], found[0]) if found else self

    def in_text(self) -> Place:
        """The same place as a line of its file's text."""
        return self if self.cell is None else Place(self.file, cells.line_of(self.file, self.cell, self.line))

    def __str__(self) -> str:
        shown = self.in_cell()
        return (
            f"{self.file}:{self.line}" if shown.cell is None else f"{self.file}, cell {shown.cell}, line {shown.line}"
        )


@dataclass(frozen=True)
class Proof:
    """A measured fact that settles the matter without an experiment."""

    fact: str


@dataclass(frozen=True, kw_only=True)
class NamedRows:
    """Rows that a finding speaks of: those of them that a run kept are shown."""

    why: str
    """What they have to do with it: "of a class that no update had"."""
    classes: tuple[int, ...] = ()
    """Rows with these labels."""
    kept_as: str = ""
    """Rows that the run kept for this reason (`core/sample.py`)."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A rule's diagnosis of the facts.

    The check fills in `code`, `name` and `severity` from the rule (a milder severity of the finding's own is kept), and
    `after_repair`: the names of the rules whose repairs were in force when this was found. The report adds `warned`.
    """

    message: str
    measured: Mapping[str, Number] = field(default_factory=dict)
    where: Place | None = None
    proof: Proof | Outcome | None = None
    repair: Repair | None = None
    fix: Fix | None = None
    code: str = ""
    name: str = ""
    severity: Severity = Severity.ERROR
    after_repair: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()
    """Warnings of libraries that speak for this fault: "torch warned at train.py:14: …"."""
    rows: NamedRows | None = None
    is_silent: bool = False
    """Whether a step with the fault was seen to go on: that a run goes on does not refute it."""
    is_by_probe: bool = False
    """Whether it rests on a probe that reads nothing from the inputs: a training that learns refutes it."""
    is_of_one_line: bool = field(default=False, compare=False)
    """Of a question: whether all trainings are at one line, so that a rule's finding in one of them is of the same training."""

    @property
    def stage(self) -> Stage:
        """The stage that the fault belongs to: the hundreds digit of its code, once that is filled in."""
        return Stage(int(self.code[2:]) // 100)


@dataclass(frozen=True, kw_only=True)
class LibraryWarning:
    """A warning that a library printed, or wrote to its log, while the script ran."""

    text: str
    library: str
    """The package whose code issued it; empty if C code called from the user's line did."""
    category: str
    """The class of the warning, or the name of the logger."""
    level: str
    """`warning`, `error` or `critical`."""
    where: Place | None
    """The innermost line of the user's code at that moment."""
    phase: str
    """`before training`, or `training`."""
    means: str = ""
    """What it means for training, if its text is known."""
    rule: str = ""
    """The name of the rule that it speaks for."""
    everyday: bool = False
    """Sound trainings print it, too: it is evidence for its rule, but not worth a line by itself."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """An exception that the user's pipeline raised, as text and places (never the exception object)."""

    type: str
    message: str
    where: Place | None
    """The deepest line of the user's own code on the way to it."""
    function: str = ""
    """The function that raised it, as `module.qualname`."""
    trace: tuple[str, ...] = ()
    """The user's frames, outermost first, as `file:line in function: source`."""
    causes: tuple[str, ...] = ()
    """The exceptions that it was raised from, the nearest first, as `type: message`."""

    def __str__(self) -> str:
        told = _told(self.message)
        return f"{self.type}: {told}" if told else self.type

    def is_same(self, other: Failure) -> bool:
        """Whether both are of one type, with one message."""
        return (self.type, self.message) == (other.type, other.message)


def failure_in(facts: Iterable[Facts]) -> Failure | None:
    """What a call raised while facts were measured."""
    found = (getattr(one, "failure", None) for one in facts)
    return next((f for f in found if isinstance(f, Failure)), None)


def _told(message: str) -> str:
    """What a message says: its first line, and the one that it announces, or the error at the end of a traceback in it."""
    lines = [line.strip() for line in message.strip().split("\n")]
    if lines[0] == "in user code:":  # as TensorFlow begins
        return lines[-1]
    start = next((number for number, line in enumerate(lines) if line.startswith("Traceback (most recent")), None)
    if start is not None:
        error = next((line for line in reversed(lines[start:]) if _ERROR.match(line)), "")
        return f"{lines[0].rstrip(':')}: {error}" if error and start else error or lines[0]
    announced = next(filter(None, lines[1:]), "") if lines[0].endswith(":") else ""
    return f"{lines[0]} {announced}".strip()
