"""How long a rehearsal's trainings may take, and the script behind them."""

from __future__ import annotations

import time

# Of the time that is left, what the training under way may take; the rest is for what follows it.
TRAINING_SHARE = 0.6
# A person waits for the budget and a tenth, whatever else the machine does.
PATIENCE = 1.1


class Limits:
    """The time of one run, in seconds of this process's processor, and at most `PATIENCE` times as many on the wall.

    It begins with the first update: the script's start, with its imports and its data, takes what it takes.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._began: tuple[float, float] | None = None
        self._until = seconds

    @property
    def began(self) -> float | None:
        """When the first update was made, on the machine's clock; None before it."""
        return None if self._began is None else self._began[1]

    @property
    def elapsed(self) -> float:
        """Seconds since the first update; 0 before it."""
        if self._began is None:
            return 0.0
        processor, wall = self._began
        return max(time.process_time() - processor, (time.monotonic() - wall) / PATIENCE)

    def begin_training(self) -> None:
        """Give a training its share of what is left."""
        if self._began is None:
            self._began = time.process_time(), time.monotonic()
        self._until = self.elapsed + TRAINING_SHARE * max(0.0, self.seconds - self.elapsed)

    @property
    def is_training_over(self) -> bool:
        """Whether the training under way has had its time."""
        return self._began is not None and self.elapsed >= self._until
