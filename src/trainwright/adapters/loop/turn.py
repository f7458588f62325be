"""One time round a training loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# A window of accumulation longer than this is taken for a loop that never steps.
LONGEST_WINDOW = 64


@dataclass(frozen=True)
class Turn:
    """One time round the loop: the number of its batch, and which of the batch's rows are wanted."""

    number: int
    rows: tuple[int, ...] | None = None
    item: Any = field(default=None, compare=False)
    """What the loop is to hand out instead of the batch of this number."""
