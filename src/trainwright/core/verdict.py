"""What a check has shown of a training: whether it learns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# Of what a verdict rests on, what no longer run would change.
ON_PURPOSE = "on purpose as it seems"
SHORT_OF_MEMORY = "the machine's memory ran short, and the rehearsal was ended"


class Shown(StrEnum):
    """The outcomes of a check."""

    LEARNS = "learns"
    LEARNS_IN_PART = "learns in part"
    """A set, an output or a training of several does not learn; the others do."""
    BROKEN = "broken"
    DOES_NOT_LEARN = "does not learn"
    NOT_SHOWN = "not shown"
    CANNOT_BE_JUDGED = "cannot be judged"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome of a check, and what it rests on in a sentence without its full stop."""

    shown: Shown
    why: str
    look_at: tuple[str, ...] = ()
    """What stands out beside it, and no finding says; a few words each."""
