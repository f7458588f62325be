"""A finding: one fault, named, measured, placed, proven, and how it is mended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from trainwright.core import cells
from trainwright.core.fix import Fix
from trainwright.core.repair import Repair
from trainwright.core.stage import Stage
from trainwright.core.trial import Outcome

Number = float | int | str


class Severity(StrEnum):
    """How sure and how grave: error and warning rest on a proof, a note is merely unusual."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Place:
    """A line of the user's code."""

    file: str
    line: int
    cell: int | None = None
    """The cell of a notebook that the line is counted in; None: it is counted in the file's text."""

    def in_cell(self) -> Place:
        """The same place, in a notebook as a line of its cell."""
        found = cells.cell_of(self.file, self.line) if self.cell is None else None
        return Place(self.file, found[1], found[0]) if found else self

    def in_text(self) -> Place:
        """The same place as a line of its file's text."""
        return self if self.cell is None else Place(self.file, cells.line_of(self.file, self.cell, self.line))

    def __str__(self) -> str:
        shown = self.in_cell()
        return (
            f"{self.file}:{self.line}"
            if shown.cell is None
            else f"{self.file}, cell {shown.cell}, line {shown.line}"
        )


@dataclass(frozen=True)
class Proof:
    """A statement that was measured and that settles the matter without an experiment."""

    fact: str


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a rule says of the facts it was given.

    `code` and `name` are stamped by the rule, and `severity` too, unless the finding's own is milder;
    `after_repair` by the walk: the names of the rules whose repairs were in force when this was found.
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

    @property
    def stage(self) -> Stage:
        """The stage that the fault belongs to: the hundred of the code, once its rule has stamped it."""
        return Stage(int(self.code[2:]) // 100)


def proof_by_repair(finding: Finding) -> Proof | None:
    """What a repair that removed its finding proves, where the rule has no proof of its own."""
    if finding.repair is None:
        return None
    stage = finding.stage.label
    return Proof(f"with this change in memory ({finding.repair.does}), the {stage} stage passes")


@dataclass(frozen=True, kw_only=True)
class Failure:
    """An exception that the user's pipeline raised, in words and places (never the exception itself)."""

    type: str
    message: str
    where: Place | None
    """The deepest line of the user's own code on the way to it."""
    function: str = ""
    """The function that raised it, as `module.qualname`."""
    trace: tuple[str, ...] = ()
    """The user's frames, outermost first, as `file:line in function: source`."""

    def __str__(self) -> str:
        lines = self.message.strip().split("\n")
        first = lines[-1].strip() if lines[0] == "in user code:" else lines[0]  # as TensorFlow begins
        return f"{self.type}: {first}" if first else self.type
