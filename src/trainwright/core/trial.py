"""A trial: an experiment that a rule asks for, and its outcome."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, stdev

from trainwright.core.repair import Repair

# Beyond seed noise: every seed agrees, the means are further apart than twice the spread of the seeds'
# differences (a paired comparison at about the 5 % level for three seeds), and by a tenth of the reference,
# so that a difference that is sure but too small to matter proves nothing.
NOISE_FACTOR = 2.0
SMALLEST_GAIN = 0.1


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The same steps from the same weights on the same rows, with one thing changed, on several seeds.

    A seed chooses the batches and the random numbers; both arms of the experiment use the same.
    """

    change: Repair
    against: Repair | None = None
    """What it is compared with; None: the pipeline as it stands."""
    steps: int = 16
    batches: int = 1
    """How many batches the steps go through in turn; 1 is one batch learnt by heart."""
    seeds: int = 3


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Mean loss over the last quarter of the steps, one number a seed, before and after the change."""

    changed: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    steps: int = 0
    start: tuple[float, ...] = ()
    """The loss of the first step without the change, one number a seed."""
    cut_off: bool = False
    """True when the time budget did not allow the experiment: then nothing is proven."""

    @property
    def seeds(self) -> int:
        """How many seeds were run."""
        return len(self.before)

    @property
    def clearly_better(self) -> bool:
        """Whether the change lowers the loss beyond seed noise."""
        return clearly_lower(self.after, self.before)

    @property
    def clearly_worse(self) -> bool:
        """Whether the change raises the loss beyond seed noise."""
        return clearly_lower(self.before, self.after)


def clearly_lower(low: tuple[float, ...], high: tuple[float, ...]) -> bool:
    """Whether `low` is under `high` on every seed, by more than noise and by enough to matter."""
    if not low or len(low) != len(high) or any(not _finite(x) for x in low):
        return False
    if any(not _finite(x) for x in high):
        return all(_finite(x) for x in low) and all(not _finite(x) or x > y for x, y in zip(high, low))
    gains = [h - x for x, h in zip(low, high)]
    spread = stdev(gains) if len(gains) > 1 else 0.0
    needed = max(NOISE_FACTOR * spread / len(gains) ** 0.5, SMALLEST_GAIN * abs(fmean(high)))
    return min(gains) > 0 and fmean(gains) > needed


def _finite(x: float) -> bool:
    return x == x and abs(x) != float("inf")
