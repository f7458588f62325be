"""The time limit of a walk."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainwright.timing import now

# A walk must end within one and a half times its budget; restoring everything takes the rest.
HARD_SHARE = 1.25


@dataclass
class Clock:
    """The time limit of a walk, in seconds."""

    budget: float
    started: float = field(default_factory=now)

    @property
    def spent(self) -> float:
        """Seconds since the walk began."""
        return now() - self.started

    @property
    def left(self) -> float:
        """Seconds left of the budget, at least one."""
        return max(1.0, self.budget - self.spent)

    @property
    def hard_left(self) -> float:
        """Seconds until running code is stopped: work begun within the budget may exceed it by a quarter."""
        return max(0.5, HARD_SHARE * self.budget - self.spent)

    @property
    def over(self) -> bool:
        """Whether the budget is spent."""
        return self.spent >= self.budget
