"""The losses of a run: how many backward passes each update takes, what is left at the end, and whether they still fall."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from trainwright.rehearsal.record import Record
from trainwright.review.rows import AnsweredRows

# Of the updates, this share takes the same number of backward passes; fewer updates show no habit.
SAME_SHARE, FEWEST_UPDATES = 0.9, 4
# A loss falls if its mean is so much lower at the end of the second half of a run than at its beginning.
FALLS = 0.05


def windows_of(record: Record) -> dict[int, list[float]]:
    """The losses that `backward` was called on, by the updates made before."""
    found: dict[int, list[float]] = {}
    for update, value in record.losses:
        found.setdefault(update, []).append(value)
    return found


def batches_of(record: Record) -> int:
    """How many backward passes an update takes, with one optimizer; 1 where that is not always the same number."""
    sizes = [len(values) for update, values in windows_of(record).items() if update < record.updates]
    if len(sizes) < FEWEST_UPDATES or len({one.optimizer for one in record.looked_updates}) != 1:
        return 1
    most, times = Counter(sizes).most_common(1)[0]
    return most if times >= SAME_SHARE * len(sizes) else 1


def list_unapplied(record: Record) -> Sequence[float]:
    """The losses behind the last update of a run that came to its end: an incomplete window, whose gradients are lost.

    What is of another size, like the score of a saliency map, is no window's.
    """
    is_cut = record.is_cut or record.ended.failure is not None
    size, windows = batches_of(record), windows_of(record)
    left, before = windows.get(record.updates, []), windows.get(record.updates - 1, [])
    if is_cut or len(record.trainings) > 1 or not left or len(left) >= size or len(before) != size:
        return ()
    return left if all(min(before) / 2 <= value <= 2 * max(before) for value in left) else ()


def stands(record: Record, rows: AnsweredRows) -> bool:
    """Whether the loss of this output falls no more in the second half of the run: a slow training is still falling."""
    values = _losses(record, rows)
    third = len(values) // 3
    return third > 0 and float(np.mean(values[-third:])) > (1 - FALLS) * float(np.mean(values[:third]))


def is_falling(record: Record, rows: AnsweredRows) -> bool:
    """Whether it is seen to fall there: the model is still another one after each update."""
    return bool(_losses(record, rows)) and not stands(record, rows)


def _losses(record: Record, rows: AnsweredRows) -> list[float]:
    """The losses of this output in the second half of the training that came before these rows."""
    begins = max((one.begins for one in record.trainings if one.begins < rows.update), default=0)
    ends = min((one.begins for one in record.trainings if one.begins >= rows.update), default=record.updates)
    half = (begins + ends) / 2
    calls = [one for one in record.answers if one.trains and one.output == rows.output and one.update >= half]
    calls.sort(key=lambda one: one.update)
    return [one.loss for one in calls if one.loss is not None]
