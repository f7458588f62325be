"""What a training leaves unlearned, or unmoved: all that it was asked, or one of its parts (a set, an output, a training of several)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainwright.rehearsal.record import Answers, LabelKind, PairSource, Record, Training
from trainwright.review.drawn import one_batch
from trainwright.review.rows import (
    SHORTLY,
    AnsweredRows,
    evaluated_rows,
    had_its_chance,
    held_out_rows,
    mixes_rows,
    trained_rows,
    updates_of,
)
from trainwright.review.scores import BESIDE, Score, tell

# A part is left behind where no measure goes so much of the way from the constant answer to a perfect one (or where none is sure
# of more than that answer: the second number), while another part goes so far. Of the sound scripts of the tests and the exam none has such a part (docs/diagnosis.md).
BEHIND, UNSURE, AHEAD = 0.1, 0.2, 0.5
FEWEST_HELD_OUT, FEWEST_TRAINED, FEWEST_UPDATES = 30, 100, 100
# A correlation from which answers are right but for their scale.
IN_ORDER = 0.8
# Rows of a sample whose label is not the usual one: fewer have no clear standard error.
FEWEST_RARE = 10
# Of fewer updates, neither can be asked what was learned nor whether weights moved.
FEWEST_ASKED = 10


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part that is left behind, and the one that is furthest ahead."""

    rows: AnsweredRows
    ahead: AnsweredRows
    evaluations: Sequence[Answers]
    """The evaluation calls of the record."""

    @property
    def told(self) -> str:
        """Both in words."""
        rows, ahead = (self._name(one) for one in (self.rows, self.ahead))
        return f"{tell(_best(self.rows), rows)}, while {tell(_best(self.ahead), ahead)}"

    def _name(self, rows: AnsweredRows) -> str:
        """The rows, and what tells them apart from the others."""
        of = f" (its output of {rows.output})" if self.rows.output != self.ahead.output else ""
        return f"{rows.named}{of}" if of or rows.trains else f"{rows.named} (evaluated {self._tell_pass(rows)})"

    def _tell_pass(self, rows: AnsweredRows) -> str:
        other = self.ahead if rows is self.rows else self.rows
        if rows.where is not None and rows.where != other.where:
            return f"at {rows.where}"
        first = rows.calls[0]
        times = len({one.update for one in self.evaluations if _is_of_same_rows(one, first)})
        return "once" if times < 2 else f"{times:,} times"

    @property
    def is_shifted(self) -> bool:
        """Whether the answers are in the right order, and only their scale or their level is wrong."""
        order = self.rows.score(BESIDE)
        return order is not None and order.value > IN_ORDER


def _is_of_same_rows(one: Answers, other: Answers) -> bool:
    """Whether two calls are of one set, or, of tables that no loader draws from, of the same rows."""
    if one.data or other.data or one.keys is None or other.keys is None:
        return one.data == other.data
    return one.keys.tobytes() == other.keys.tobytes()


def parts_behind(record: Record, training: Training | None = None) -> list[Part]:
    """The sets and outputs that are not learned, though another one is."""
    last = training or (record.trainings[-1] if record.trainings else None)
    made = updates_of(record) if last is None else record.updates_in(last)
    if not had_its_chance(record, training) or mixes_rows(record) or made < FEWEST_UPDATES:
        return []
    held = held_out_rows(record, last)
    known = {one.output for one in held}
    trained = [one for one in trained_rows(record, last) if one.output not in known and one.source in _ASKED]
    every = [*held, *trained]
    ahead = max((one for one in every if one.learned), key=_way, default=None)
    if ahead is None or _way(ahead) < AHEAD:
        return []
    calls = [one for one in record.answers if not one.trains]
    behind = [one for one in every if one.trained is not None and _is_behind(one, every)]
    return [Part(rows=one, ahead=ahead, evaluations=calls) for one in behind]


_ASKED = (PairSource.LOSS, PairSource.FIT)


def _is_behind(one: AnsweredRows, every: list[AnsweredRows]) -> bool:
    """Whether it was measured at the end, on enough rows, and goes no part of the way."""
    if one.update < SHORTLY * max(other.update for other in every):
        return False
    is_enough = len(one.labels) >= (FEWEST_TRAINED if one.trains else FEWEST_HELD_OUT)
    return is_enough and _way(one) < (UNSURE if one.at_constant else BEHIND)


def _way(rows: AnsweredRows) -> float:
    """The share of the way from the constant answer to a perfect one that the best measure goes."""
    return _best(rows).room


def _best(rows: AnsweredRows) -> Score:
    return max((one for one in rows.scores if one.name != BESIDE), key=lambda one: one.room)


def still_trainings(record: Record) -> list[Training]:
    """The trainings that make no update, or whose updates leave the weights as they were."""
    made = [(one, record.updates_in(one)) for one in record.trainings]
    return [one for one, n in made if n == 0 == one.planned or (one.has_moved is False and n >= FEWEST_ASKED)]


def rows_at_constant(record: Record, training: Training | None = None) -> AnsweredRows | None:
    """The rows on which a run, or one training, that had its chance is no better than a constant answer; None: none such."""
    made = updates_of(record) if training is None else record.updates_in(training)
    one = one_batch(record)  # learned by heart on purpose, it asks nothing of other rows
    if not had_its_chance(record, training) or made < FEWEST_ASKED or (one is not None and one.is_chosen):
        return None
    last = training or (record.trainings[-1] if record.trainings else None)
    held = held_out_rows(record, training)
    if held:
        if any(one.learned for one in held):
            return None
        flat = [
            one for one in held if one.at_constant and one.trained is not None and one.source != PairSource.DIFFERENCE
        ]
        return next((one for one in flat if len(one.labels) >= FEWEST_HELD_OUT and not tell_rare(one)), None)
    if evaluated_rows(record, last):
        return None
    trained = trained_rows(record, training)
    trained = [one for one in trained if training is not None or one.output.kind == LabelKind.CLASSES]
    if any(one.learned for one in trained):
        return None
    return next((one for one in trained if one.at_constant and len(one.labels) >= FEWEST_TRAINED), None)


def tell_rare(rows: AnsweredRows) -> str:
    """That these are a sample of rows of which too few have another label than most, in words; empty: they are not."""
    if rows.are_whole or not rows.output.is_single:
        return ""
    rare = len(rows.labels) - int(np.unique(rows.labels, return_counts=True)[1].max())
    told = (
        f"{rows.named} were kept of {sum(one.total for one in rows.calls):,}, of which only {rare} have another label"
    )
    return f"{told} than the rest: too few to tell" if rare < FEWEST_RARE else ""
