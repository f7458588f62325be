"""Stage 8, overfit: memorizing one batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainwright.core import Facts, Stage


@dataclass(frozen=True, kw_only=True)
class Hits:
    """Right answers, and how many a constant answer would have right."""

    right: int
    answers: int
    by_constant: int
    """Right if the most frequent answer is always given, of several labels the most frequent of each."""
    of_labels: bool = False
    """They are several labels for each row, each yes or no."""


@dataclass(frozen=True, kw_only=True)
class OverfitFacts(Facts):
    """The loss curve of several steps on one batch, with the script's own initial weights and optimizer."""

    stage = Stage.OVERFIT
    losses: tuple[float, ...]
    rows: int
    learnt: bool
    """The loss fell below LEARNT_SHARE of its first value, or to its floor."""
    falling: bool
    """The loss is still falling at the end: with more steps, the batch would be learned."""
    floor: float = 0.0
    """The lowest loss that the targets allow (label smoothing, soft targets)."""
    predicted_classes: int | None = None
    batch_classes: int | None = None
    diverged: bool = False
    """The loss became non-finite, or more than doubled."""
    slow: bool = False
    """The loss hardly changed: by less than a hundredth of its first value."""
    constant: float | None = None
    """The loss of the best constant prediction for this batch, if known."""
    evaluated: float | None = None
    """The loss on the batch after the steps, in evaluation mode."""
    hits: Hits | None = None
    """How many of the batch's answers are right after the steps, in evaluation mode; None: it has no right answers."""
    labels: Mapping[int, int] = field(default_factory=dict)
    """How many of its rows have each class; empty if rows have none."""

    @property
    def final(self) -> float:
        """The mean loss over the last fifth of the steps; infinite if any of them is NaN."""
        tail = self.losses[-max(1, len(self.losses) // 5) :]
        return sum(tail) / len(tail) if all(x == x for x in tail) else float("inf")

    @property
    def share(self) -> float:
        """How far the loss came on the way from a constant prediction to the floor; 0 if the constant is unknown."""
        way = self.constant - self.floor if self.constant is not None else 0.0
        return (self.constant - self.final) / way if self.constant is not None and way > 0 else 0.0

    @property
    def by_heart(self) -> bool:
        """Whether the batch was learned: its loss is near the floor, or its answers are right at the end.

        Where all rows have one answer, giving it shows nothing.
        """
        if self.learnt or self.hits is None:
            return self.learnt
        wrong, by_constant = (self.hits.answers - n for n in (self.hits.right, self.hits.by_constant))
        return by_constant > 0 and wrong <= WRONG_SHARE * by_constant

    @property
    def unlearned(self) -> bool:
        """Whether nothing of the batch was seen to be learned."""
        falls = self.falling and self.losses[-1] < self.losses[0]
        return not self.learnt and not falls and self.share < FIRST_SHARE


# Less of the way is not worth a mention.
FIRST_SHARE = 0.1
# A batch counts as learned when a quarter of the first loss is left. No constant prediction gets there on a batch of
# mixed classes (the best it can do is the entropy of the labels, over half of ln C if every class occurs), while a
# model that works gets there within a few dozen steps.
LEARNT_SHARE = 0.25
SLOW_SHARE = 0.01
# Of a batch that was learned, at most this share of what a constant answer has wrong is wrong: of 16 rows, none.
WRONG_SHARE = 0.05
DIVERGED_FACTOR = 2.0


def measure_overfit(
    losses: tuple[float, ...],
    rows: int,
    *,
    floor: float = 0.0,
    predicted_classes: int | None = None,
    batch_classes: int | None = None,
    constant: float | None = None,
    evaluated: float | None = None,
    hits: Hits | None = None,
    labels: Mapping[int, int] | None = None,
) -> OverfitFacts:
    """Return the facts of a loss curve (one value per step; the first is before any update)."""
    finite = [x for x in losses if x == x and abs(x) != float("inf")]
    first = losses[0] if losses else float("nan")
    tail = finite[-max(1, len(losses) // 5) :]
    last = sum(tail) / len(tail) if tail else float("nan")
    middle = finite[len(finite) // 2 : len(finite) // 2 + len(tail)] or tail
    # A first loss far above that of a constant prediction falls to it without anything being learned; one far below it
    # has been learned before.
    start = constant if constant is not None and constant > floor else first
    gap = start - floor
    learnt = bool(finite) and len(finite) == len(losses) and gap > 0 and last - floor <= LEARNT_SHARE * gap
    return OverfitFacts(
        losses=losses,
        rows=rows,
        learnt=learnt,
        falling=bool(finite) and (_falls(sum(middle) / len(middle), last, 0.05) or _keeps_falling(finite)),
        floor=floor,
        predicted_classes=predicted_classes,
        batch_classes=batch_classes,
        diverged=len(finite) < len(losses) or last > DIVERGED_FACTOR * first,
        slow=bool(finite) and not learnt and abs(first - last) < SLOW_SHARE * abs(first),
        constant=constant,
        evaluated=evaluated,
        hits=hits,
        labels=labels or {},
    )


# A loss that has settled on a fixed batch changes by less than this fraction from one fifth of the steps to the next.
_STILL = 0.01


def _keeps_falling(losses: list[float]) -> bool:
    """Whether the mean loss falls in each of the last two fifths of the steps: a slow start, not a plateau."""
    size = len(losses) // 5
    if size < 2:
        return False
    third, fourth, fifth = (sum(losses[k * size : (k + 1) * size]) / size for k in (2, 3, 4))
    return _falls(third, fourth, _STILL) and _falls(fourth, fifth, _STILL)


def _falls(before: float, after: float, share: float) -> bool:
    """Whether a loss, which may be negative, falls by more than a share of its size."""
    return before - after > share * abs(before)
