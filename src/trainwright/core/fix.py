"""A fix: a change to the user's source."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Safety(StrEnum):
    """Whether a fix can be applied without reading it."""

    SAFE = "safe"  # certainly what the author meant
    UNSAFE = "unsafe"  # changes what is trained; the author should look
    MANUAL = "manual"  # only the author can decide what to write


@dataclass(frozen=True)
class RenameKeyword:
    """Rename a keyword argument in the call that spans a line."""

    file: str
    line: int
    old: str
    new: str


@dataclass(frozen=True)
class SetKeyword:
    """Set the value of a keyword argument, or add it, in the call that spans a line."""

    file: str
    line: int
    name: str
    value: str
    """Python source."""
    function: str = ""
    """The call is of a function of this last name (`from_pretrained`), or of a class whose name ends so
    (`TrainingArguments`); empty: the call that has the keyword."""
    position: int | None = None
    """The argument's position when it is passed without its name."""


@dataclass(frozen=True)
class RemoveKeyword:
    """Remove a keyword argument from the call that spans a line."""

    file: str
    line: int
    name: str


@dataclass(frozen=True)
class RenameFunction:
    """Rename the function or method whose `def` is on a line; nothing that refers to it changes."""

    file: str
    line: int
    old: str
    new: str


@dataclass(frozen=True)
class RenameName:
    """Replace a name that a line uses and nothing sets, wherever the file uses it; or an object's attribute on the line."""

    file: str
    line: int
    old: str
    new: str
    of_object: bool = False


Edit = RenameKeyword | SetKeyword | RemoveKeyword | RenameFunction | RenameName


@dataclass(frozen=True, kw_only=True)
class Fix:
    """A change to the source, in words and, if possible, as edits."""

    does: str
    """An imperative without a full stop, naming the code to write: "pass num_labels=3 to from_pretrained"."""
    safety: Safety = Safety.MANUAL
    edits: tuple[Edit, ...] = ()
    diff: str | None = None
    tried: bool = False
    """True if the finding was gone with its repair in force in memory."""
    verified: bool = False
    """True if, in a second check over an edited copy of the source, the finding was gone and nothing else was broken."""
