"""What a walk has shown of a training: whether it learns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Shown(StrEnum):
    """The outcomes of a walk."""

    LEARNS = "learns"
    BROKEN = "broken"
    DOES_NOT_LEARN = "does not learn"
    NOT_SHOWN = "not shown"
    CANNOT_BE_JUDGED = "cannot be judged"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome of a walk, and what it rests on in a sentence without its full stop."""

    shown: Shown
    why: str
