"""A trial: an experiment that a rule requests, and its outcome."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from statistics import fmean, stdev

from trainwright.core.repair import Repair

# Beyond seed noise: every seed agrees, a paired one-sided t test of the seeds' gains holds at the 5 % level (Student's
# table, by degrees of freedom; 2.92 is that of three seeds), and the loss falls by a tenth, because a difference
# that is sure but too small to matter proves nothing.
CRITICAL_T = {1: 6.31, 2: 2.92, 3: 2.35, 4: 2.13}
SMALLEST_GAIN = 0.1


# What both arms of a trial are judged by: the mean loss of the last quarter of the steps; or, where the change is of the
# loss itself, the share of the rows of each class that are predicted wrongly after the steps.
LOSS = "loss"
WRONG_SHARE_A_CLASS = "mean share of wrong rows per class"  # every class weighs as much as any other


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The same steps from the same weights on the same rows, with one thing changed, on several seeds.

    A seed chooses the batches and the random numbers; both arms of the experiment use the same.
    """

    change: Repair
    against: Repair | None = None
    """The change it is compared with; None: the unchanged pipeline."""
    alongside: tuple[Repair, ...] = ()
    """Changes in force in both arms."""
    steps: int = 16
    batches: int = 1
    """How many batches the steps cycle through; 1 means that one batch is memorized."""
    judged_by: str = LOSS
    seeds: int = 3

    @property
    def cut_off(self) -> Outcome:
        """Its outcome, where it was not made."""
        return Outcome(changed=self.change.does, before=(), after=(), cut_off=True)


# A short run learns when it takes at least this share off the loss that it began with.
LEARNT_SHARE = 0.03
ALONE_FACTOR = 10.0


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of a trial: one number per seed, without and with the change."""

    changed: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    steps: int = 0
    start: tuple[float, ...] = ()
    """The loss of the first step without the change, one number per seed."""
    constant: tuple[float, ...] = ()
    """The loss of the best constant prediction on each seed's rows; empty if it is not known for all."""
    judged_by: str = LOSS
    cut_off: bool = False
    """True if the time budget did not allow the experiment; then nothing is proven."""
    without_effect: bool = False
    """True if the losses moved and both arms agree to the last bit: the change did not reach the training."""

    @property
    def seeds(self) -> int:
        """How many seeds were run."""
        return len(self.before)

    @property
    def clearly_better(self) -> bool:
        """Whether the change lowers the loss beyond seed noise."""
        return clearly_lower(self.after, self.before)

    @property
    def learns_alone(self) -> bool:
        """Whether, with the change, the loss falls on every seed, and ten times as far as without it."""
        runs = list(zip(self.start, self.before, self.after))
        return bool(runs) and all(
            after < (1 - LEARNT_SHARE) * start and start - after > ALONE_FACTOR * abs(start - before)
            for start, before, after in runs
        )

    @property
    def clearly_worse(self) -> bool:
        """Whether the change raises the loss beyond seed noise."""
        return clearly_lower(self.before, self.after)


def clearly_lower(low: tuple[float, ...], high: tuple[float, ...]) -> bool:
    """Whether `low` is below `high` on every seed, by more than noise and by enough to matter."""
    if not low or len(low) != len(high) or any(not _finite(x) for x in low):
        return False
    if any(not _finite(x) for x in high):
        return all(_finite(x) for x in low) and all(not _finite(x) or x > y for x, y in zip(high, low))
    if min(*low, *high) > 0:  # losses of runs that go astray differ by factors, so gains are counted in factors
        gains, smallest = [log(h / x) for x, h in zip(low, high)], -log(1 - SMALLEST_GAIN)
    else:
        gains, smallest = [h - x for x, h in zip(low, high)], SMALLEST_GAIN * abs(fmean(high))
    noise = stdev(gains) / len(gains) ** 0.5 if len(gains) > 1 else 0.0
    critical = CRITICAL_T.get(len(gains) - 1, CRITICAL_T[4])
    return min(gains) > 0 and fmean(gains) > max(critical * noise, smallest)


def _finite(x: float) -> bool:
    return x == x and abs(x) != float("inf")
