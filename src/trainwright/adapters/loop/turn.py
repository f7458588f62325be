"""One round of a training loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# An accumulation window longer than this is treated as a loop that never steps.
LONGEST_WINDOW = 64


@dataclass(frozen=True)
class Turn:
    """One round of the loop: the number of its batch, and which of the batch's rows are wanted."""

    number: int
    rows: tuple[int, ...] | None = None
    item: Any = field(default=None, compare=False)
    """The batch that the loop yields instead of the one with this number."""
