"""Gradient accumulation as the record shows it: how many backward passes each update takes, and what is left at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from trainwright.rehearsal.record import Record

# Of the updates, this share takes the same number of backward passes; fewer updates show no habit.
SAME_SHARE, FEWEST_UPDATES = 0.9, 4


def windows_of(record: Record) -> dict[int, list[float]]:
    """The losses that `backward` was called on, by the updates made before."""
    found: dict[int, list[float]] = {}
    for update, value in record.losses:
        found.setdefault(update, []).append(value)
    return found


def batches_of(record: Record) -> int:
    """How many backward passes an update takes, with one optimizer; 1 where that is not always the same number."""
    sizes = [len(values) for update, values in windows_of(record).items() if update < record.updates]
    if len(sizes) < FEWEST_UPDATES or len({one.optimizer for one in record.steps}) != 1:
        return 1
    most, times = Counter(sizes).most_common(1)[0]
    return most if times >= SAME_SHARE * len(sizes) else 1


def unapplied(record: Record) -> Sequence[float]:
    """The losses behind the last update of a run that came to its end: an incomplete window, whose gradients are lost.

    What is of another size, like the score of a saliency map, is no window's.
    """
    is_cut = record.is_cut or record.ended.failure is not None
    size, windows = batches_of(record), windows_of(record)
    left, before = windows.get(record.updates, []), windows.get(record.updates - 1, [])
    if is_cut or len(record.trainings) > 1 or not left or len(left) >= size or len(before) != size:
        return ()
    return left if all(min(before) / 2 <= value <= 2 * max(before) for value in left) else ()
