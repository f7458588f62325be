"""A fix: a change to the user's source."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Safety(StrEnum):
    """Whether a fix can be applied unread."""

    SAFE = "safe"  # surely what the author meant
    UNSAFE = "unsafe"  # changes what is trained; the author should look
    MANUAL = "manual"  # only the author can do it


@dataclass(frozen=True)
class RenameKeyword:
    """Write a keyword argument under another name, in the call that spans a line."""

    file: str
    line: int
    old: str
    new: str


@dataclass(frozen=True)
class SetKeyword:
    """Give a keyword argument another value, or add it, in the call that spans a line."""

    file: str
    line: int
    name: str
    value: str
    """Python source."""
    function: str = ""
    """The call is of a function of this last name (`from_pretrained`), or of a class whose name ends so
    (`TrainingArguments`); empty: the call that has the keyword."""
    position: int | None = None
    """Where the argument stands when it is given without its name."""


@dataclass(frozen=True)
class RemoveKeyword:
    """Leave a keyword argument out of the call that spans a line."""

    file: str
    line: int
    name: str


Edit = RenameKeyword | SetKeyword | RemoveKeyword


@dataclass(frozen=True, kw_only=True)
class Fix:
    """What to do to the source, in words, and as edits where they are known."""

    does: str
    """An imperative without a full stop, naming the code to write: "pass num_labels=3 to from_pretrained"."""
    safety: Safety = Safety.MANUAL
    edits: tuple[Edit, ...] = ()
    diff: str | None = None
    tried: bool = False
    """True once the finding was gone with its repair made in memory."""
    verified: bool = False
    """True once the finding was gone, and nothing else broken, in a second walk over an edited copy of the source."""
