"""Steps on odd rows: missing, NaN or infinite values, and values far from all others; bisection finds those on which a step fails.

`read_further` reads on where the dataset stage stopped, as far as the time allows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trainwright.probes.splits.odd_rows import OddRows
from trainwright.probes.splits.values import evenly
from trainwright.seams.failures.blame import failure_of, passed_on, tolerated
from trainwright.stages import UNTRIED, BadRow, Extremes, OddRow, Reading, SplitFacts
from trainwright.tensors.items import length, reader_of
from trainwright.timing import now

# At most this many rows are in such a step.
MOST_ROWS = 16
# Extreme rows that are put through a step, and rows named.
_MOST_ODD, _MOST_BAD = 48, 4
# Batches of other rows whose losses say what is usual.
_USUAL = 4
# A row with which the loss of a batch is this many times the largest of the usual ones outweighs all others.
_JUMP = 100.0
# The share of the time that reading further may take; the rest is for steps.
_READING_SHARE = 0.8
# Rows that are read between two looks at the clock.
_AT_A_TIME = 1_000
# A set that could not be read to its end is sampled in this many evenly spaced parts first.
_PARTS = 64
# Datasets nest in each other only so deep.
_MOST_WRAPPED = 8
# So many failing rows show what is wrong.
_MOST_UNREADABLE = 4


@dataclass(frozen=True, kw_only=True)
class RowStep:
    """What a training step on chosen rows came to."""

    failure: str = ""
    """The exception that it raised."""
    loss: float | None = None

    @property
    def wrong(self) -> str:
        """The exception, the loss if it is not finite, or ""."""
        if self.failure or self.loss is None or math.isfinite(self.loss):
            return self.failure
        return f"the loss is {self.loss}"


Step = Callable[[Sequence[int]], RowStep | None]
"""A training step on these rows, with the initial weights; None if it is not possible."""


def suspicious_rows(facts: SplitFacts, accepts: Sequence[str]) -> set[int]:
    """Rows whose inputs or labels are missing, NaN or infinite."""
    label = facts.labels.column if facts.labels else None
    taken = [c for c in facts.columns if c.name == label or c.name in accepts or c.name.isdigit()]
    return {row for c in taken for row in (*c.missing_rows, *c.non_finite_rows)}


def try_unusable(facts: SplitFacts, accepts: Sequence[str], batch_size: int, step: Step) -> str:
    """What a step on rows with missing or non-finite values comes to; empty: nothing bad, or no such rows."""
    bad = suspicious_rows(facts, accepts)
    if not bad or facts.rows is None:
        return ""
    # Half bad and half good rows in one batch: a loss that ignores unknown labels needs some known ones.
    count = max(1, min(MOST_ROWS, batch_size) // 2)
    others = _others(facts.rows, bad, count)
    usual = step(others) if others else RowStep()
    if usual is not None and usual.wrong:
        return f"{UNTRIED}: {usual.wrong}"
    known = others if batch_size > 1 else []
    tried = step([*known, *sorted(bad)[:count]])
    return tried.wrong if tried is not None else ""


def try_extremes(facts: SplitFacts, accepts: Sequence[str], batch_size: int, step: Step) -> SplitFacts:
    """The facts, in which each of the extremes that reach the model has the loss of a step with and without such rows."""
    label = facts.labels.column if facts.labels else None
    tried = []
    for one in facts.extremes:
        if one.column == label or one.column in accepts or one.column.isdigit():
            tried.append(_tried(one, facts, batch_size, step))
    return replace(facts, extremes=tuple(tried))


def _tried(one: Extremes, facts: SplitFacts, batch_size: int, step: Step) -> Extremes:
    if facts.rows is None:
        return one
    odd, count = {row for found in facts.extremes for row in found.rows}, max(1, min(MOST_ROWS, batch_size) // 2)
    others = _others(facts.rows, odd, 2 * count if batch_size > 1 else 1)
    usual = step(others) if others else None
    if usual is None or usual.wrong or usual.loss is None:
        return one
    known = others[:count] if batch_size > 1 else []
    found = step([*known, *one.rows[:count]])
    if found is None or (found.loss is None and not found.failure):
        return one
    return replace(one, usual_loss=usual.loss, loss=found.loss, failure=found.failure)


def _others(total: int, left_out: set[int], count: int) -> list[int]:
    """The first rows that are not left out."""
    return list(itertools.islice((row for row in range(total) if row not in left_out), count))


@dataclass(frozen=True, kw_only=True)
class TriedSet:
    """A set whose extreme rows are put through a step."""

    name: str
    odd: Sequence[OddRow]
    others: Sequence[int]
    """Rows that are read like any other."""
    batch_size: int
    step: Step
    evaluated: bool = False


def try_worst_rows(tried: TriedSet, seconds: float) -> list[BadRow]:
    """The rows on which the step fails although it does not on others."""
    return _Search(tried, seconds).run()


class _Search:
    """One set's extreme rows, in batches with usual ones."""

    def __init__(self, tried: TriedSet, seconds: float) -> None:
        self.set, self.until = tried, now() + seconds
        self.size = max(1, min(MOST_ROWS, tried.batch_size))
        odd = {one.row for one in tried.odd}
        self.others = list(itertools.islice((r for r in tried.others if r not in odd), _USUAL * self.size))
        self.usual_loss: float | None = None
        self.knows_several = False

    def run(self) -> list[BadRow]:
        """Try all of them, and take apart each batch that fails."""
        if not self._learn_usual():
            return []
        odd, bad = list(self.set.odd[:_MOST_ODD]), list[BadRow]()
        share = max(1, self.size // 2)
        for start in range(0, len(odd), share):
            if self._over or len(bad) >= _MOST_BAD:
                break
            part = odd[start : start + share]
            bad += itertools.islice(self._failing(part), _MOST_BAD - len(bad))
        return bad

    @property
    def _over(self) -> bool:
        return now() > self.until

    def _learn_usual(self) -> bool:
        """Whether a step on usual rows succeeds; its loss is kept."""
        if not self.set.odd or not self.others:
            return False
        found = self.set.step(self.others[: self.size])
        if found is None or found.wrong or found.loss is None:
            return False
        self.usual_loss = found.loss
        return not self._over

    def _learn_further(self) -> None:
        """Let the usual loss be the largest of several batches."""
        for start in range(self.size, len(self.others), self.size) if not self.knows_several else ():
            found = self.set.step(self.others[start : start + self.size])
            if found is not None and found.loss is not None and math.isfinite(found.loss):
                self.usual_loss = max(self.usual_loss or 0.0, found.loss)
        self.knows_several = True

    def _failing(self, odd: Sequence[OddRow]) -> Iterator[BadRow]:
        """Those of the rows with each of which alone, among usual rows, the step fails."""
        if self._over:
            return
        found = self.set.step(self._with([one.row for one in odd]))
        if found is None or not self._is_bad(found):
            return
        if len(odd) > 1:
            yield from self._failing(odd[: len(odd) // 2])
            yield from self._failing(odd[len(odd) // 2 :])
            return
        yield BadRow(
            split=self.set.name,
            odd=odd[0],
            evaluated=self.set.evaluated,
            failure=found.failure,
            loss=found.loss,
            usual_loss=self.usual_loss,
        )

    def _with(self, rows: Sequence[int]) -> list[int]:
        """A batch with these rows, of the usual size."""
        return [*self.others[: self.size - len(rows)], *rows]

    def _is_bad(self, found: RowStep) -> bool:
        if found.wrong:
            return True
        if not self._jumps(found.loss):
            return False
        self._learn_further()
        return self._jumps(found.loss)

    def _jumps(self, loss: float | None) -> bool:
        usual = self.usual_loss or 0.0
        return loss is not None and usual > 0 and loss > _JUMP * usual


def try_rows_of(
    data: Any, facts: SplitFacts, step: Callable[[Sequence[Any]], RowStep | None], seconds: float, batch_size: int
) -> tuple[Reading, list[BadRow]]:
    """What training steps on the extreme rows of a set come to, after as many of its rows were read as time allows.

    Args:
        step: a step on these items of the set.
    """
    started, rows = now(), len(data)
    odd, read = list(facts.odd), facts.read
    if read < rows:
        found = read_further(data, rows, read, _READING_SHARE * seconds)
        known = {one.row for one in odd}
        odd, read = [*(o for o in found.found() if o.row not in known), *odd], min(rows, read + found.read)
    tried = TriedSet(
        name=facts.name,
        odd=odd,
        others=range(min(rows, facts.read)),
        batch_size=batch_size,
        step=lambda numbers: step(Items(data, numbers)),
    )
    return Reading(read=read, rows=rows), try_worst_rows(tried, seconds - (now() - started))


class Items(Sequence[Any]):
    """Some rows of a set, read as they are asked for."""

    def __init__(self, data: Any, rows: Sequence[int]) -> None:
        self.data, self.rows = data, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, position: Any) -> Any:
        return reader_of(self.data)(self.rows[position])


def _add_rows(found: OddRows, data: Any, rows: Sequence[int]) -> None:
    """Add some rows, until too many of them cannot be read."""
    items, numbers, unreadable = [], [], 0
    for row in rows:
        try:
            items.append(passed_on(reader_of(data), row))
            numbers.append(row)
        except Exception as error:  # the user's own dataset raised, which is a finding
            found.add_unreadable(row, str(failure_of(error)))
            unreadable += 1
            if unreadable >= _MOST_UNREADABLE:
                break
    if items:
        found.add_items(items, numbers)


def read_further(data: Any, rows: int, read: int, seconds: float) -> OddRows:
    """The extreme ones of the rows from `read` on.

    Arrays that the set holds with one entry per row are looked at whole; then its items are read.
    """
    started = now()
    found = OddRows()
    for name, column in held_columns(data, rows):
        with tolerated():  # a user's object that only looks like an array
            found.add_column(name, column, range(rows))
        if now() - started > seconds:
            return found
    parts = [range(start, min(rows, start + _AT_A_TIME)) for start in range(read, rows, _AT_A_TIME)]
    for part in _spread(parts):
        _add_rows(found, data, part)
        if now() - started > seconds:
            break
    return found


def held_columns(data: Any, rows: int) -> Iterator[tuple[str, Sequence[Any]]]:
    """Arrays, tensors, frames' columns and lists that a set holds with one entry per row.

    They are only where to look: what the rows are, their items tell.
    """
    for _ in range(_MOST_WRAPPED):
        for name, value in list(getattr(data, "__dict__", {}).items()):
            yield from _columns_of(name, value, rows)
        data = getattr(data, "dataset", None) or getattr(data, "data", None)
        if data is None or length(data) != rows:
            return


def _columns_of(name: str, value: Any, rows: int) -> Iterator[tuple[str, Sequence[Any]]]:
    if length(value) != rows or isinstance(value, str):
        return
    if hasattr(value, "columns") and hasattr(value, "to_numpy"):
        for column in value.columns:
            yield f"{name}.{column}", _plain(value[column])
    elif isinstance(value, (list, tuple)) or len(getattr(value, "shape", ())) in (1, 2):
        yield name, _plain(value)


def _plain(value: Any) -> Any:
    """A column of numbers as an array, of other values as a list."""
    if hasattr(value, "detach"):
        return np.asarray(value.detach().cpu())
    if hasattr(value, "to_numpy"):
        array = value.to_numpy()
        return array if array.dtype.kind in "iufb" else array.tolist()
    return value


def _spread(parts: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    """All parts, a few evenly spaced ones first, so that a pass that is cut short has seen every region."""
    first = evenly(range(len(parts)), _PARTS) if len(parts) > _PARTS else []
    chosen = set(first)
    return [*(parts[i] for i in first), *(part for i, part in enumerate(parts) if i not in chosen)]
