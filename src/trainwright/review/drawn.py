"""What training draws of a set: one batch of it in all updates, or not all of its rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from trainwright.rehearsal.record import Drawn, Record

FEWEST_UPDATES = 20
# Of the batches that so many updates need, the share that has to be drawn before a loop counts as asking for them anew.
ASKED_SHARE = 0.5
# A set of so many rows, drawn from for so many passes, of which less than this share was ever drawn: none of 236 scripts
# was wrong by row numbers.
FEWEST_ROWS, PASSES, DRAWN_SHARE = 50, 1.5, 0.6
# Of the rows never drawn, at most this share is explained by drawing at random (a sampler that balances classes).
BY_CHANCE = 0.25


@dataclass(frozen=True, kw_only=True)
class OneBatch:
    """The one batch that every update sees."""

    rows: int
    updates: int
    """Updates that were looked at."""
    drawn: Drawn
    """What was drawn of its set."""

    @property
    def is_chosen(self) -> bool:
        """Whether it was fetched once and nothing asked for another: a batch that is learned by heart on purpose.

        Batches that a loader fetched ahead are drawn once; those of an iterator that is made anew, again and again. What an
        evaluation reads of the same set is not asked for by the training.
        """
        drawn = self.drawn.draws - self.drawn.evaluated
        total, most = drawn.total(), max(drawn.values(), default=0)
        asks = total >= ASKED_SHARE * self.updates * self.rows
        return not (asks and (most > 1 or len(drawn) >= self.drawn.size))


def one_batch(record: Record) -> OneBatch | None:
    """The batch of all updates; None if there are several, or if it is the whole set."""
    for output in record.trained_labels:
        calls = [one for one in record.answers if one.trains and one.output == output and one.keys is not None]
        sets = {one.data for one in calls}
        held = {tuple(sorted(one.keys.tolist())) for one in calls if one.keys is not None}
        if len(held) != 1:
            continue
        distinct = len(set(next(iter(held))))
        bigger = [one for one in record.drawn if {one.data} == sets and one.size > 2 * distinct]
        updates = len({one.update for one in calls})
        if bigger and updates >= FEWEST_UPDATES and len(next(iter(held))) == distinct:
            return OneBatch(rows=distinct, updates=updates, drawn=bigger[0])
    return None


def leaves_rows_out(drawn: Drawn) -> bool:
    """Whether training leaves out rows of a set, and not by chance."""
    total, distinct = sum(drawn.draws.values()), len(drawn.draws)
    if not drawn.trains or drawn.size <= FEWEST_ROWS or total < PASSES * drawn.size:
        return False
    return distinct < DRAWN_SHARE * drawn.size and _expected(drawn) < BY_CHANCE * (drawn.size - distinct)


def _expected(drawn: Drawn) -> float:
    """How many rows are not drawn by chance alone, estimated from those drawn once and twice (Chao)."""
    times = Counter(drawn.draws.values())
    return times[1] * (times[1] - 1) / (2 * (times[2] + 1))
