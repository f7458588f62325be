"""The seconds that the limits of a check are counted in.

They are those of a clock on the wall. Tests count the processor time of their own process instead, so that a check measures
the same on a busy machine, and let the watchdog wait longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Timing:
    """How time is counted."""

    now: Callable[[], float] = time.monotonic
    """Seconds since any moment."""
    patience: float = 1.0
    """How many times a limit, in seconds on the wall, must pass before running code is interrupted."""


_timing = Timing()


def now() -> float:
    """Seconds since any moment."""
    return _timing.now()


def date_of_now() -> str:
    """The local date and time, to the minute, with the offset from UTC."""
    return datetime.now().astimezone().isoformat(timespec="minutes")


def watchdog_seconds(limit: float) -> float:
    """The seconds on the wall after which code that should take `limit` is interrupted."""
    return _timing.patience * limit


def count_time(timing: Timing) -> Timing:
    """Count time in another way from now on; returns the way before."""
    global _timing
    before, _timing = _timing, timing
    return before
