"""The rows of a set that are extreme: largest and smallest, longest and shortest, rarest, missing or not finite, or so far from
all others that one of them outweighs the rest.

They are found in one pass, in columns where a set has them, otherwise item by item.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from trainwright.probes.splits.values import plain_number, plain_values
from trainwright.stages import Extremes, OddRow

# Rows named per column and kind of oddity.
NAMED = 2
# A column with more distinct whole numbers than this has no rare classes.
MOST_VALUES = 1_000
# A value that occurs more often than this is not rare.
RARE = 3
# Numbers that are looked at at a time.
_AT_A_TIME = 4_000_000
# Values that together are larger stay as they are.
MOST_STACKED_BYTES = 16 * 2**20
_LENGTHS = ("the greatest length", "the smallest length")
_VALUES = ("the largest value", "the smallest value")
# How many times further from the median than the furthest other row. The largest of a thousand draws from a lognormal
# distribution of sigma 2 is 4 times as far as the fifth largest; the largest income, price or count is not 100 times.
_TIMES = 100.0
# At most this share of the rows is extreme; if they all have the same value, such as -999 for "unknown", this many.
_FEW, _SAME = 0.005, 0.2
_FEWEST_ROWS = 40
# The other rows must vary: a column of zeros with a single 1 is an ordinary indicator.
_FEWEST_VALUES = 5
_MOST_FEATURES = 4096
_MOST_NAMED = 1000
# Rows for the quartiles, and features that are looked at in every row.
_SAMPLED, _LOOKED_AT = 2000, 20


def columns_of(items: Sequence[Any]) -> dict[str, Sequence[Any]]:
    """The values of items by column; the members of a tuple are "0", "1", as in the facts of a set."""
    first = items[0] if items else {}
    if hasattr(first, "keys"):
        present = [set(item.keys()) for item in items]  # a BatchEncoding has no `get`
        return {
            str(name): [item[name] if name in names else None for item, names in zip(items, present)]
            for name in first.keys()  # noqa: SIM118
        }
    if isinstance(first, (tuple, list)):
        return {str(place): values for place, values in enumerate(zip(*items))}
    return {"0": items}


def stack_values(values: Sequence[Any]) -> Sequence[Any]:
    """The values as one array, if they are numbers or lists of numbers of one shape; otherwise unchanged."""
    first = values[0] if len(values) else None
    if isinstance(first, (str, dict, type(None))) or isinstance(values, np.ndarray):
        return values
    if getattr(first, "nbytes", 8) * len(values) > MOST_STACKED_BYTES:
        return values
    try:
        array = np.asarray([np.asarray(v) for v in plain_values(values)] if hasattr(first, "shape") else values)
    except (ValueError, TypeError, RuntimeError):  # several lengths, a value that is missing, other objects
        return values
    numbers: Any = array
    return numbers if array.dtype.kind in "iufb" else values


class OddRows:
    """The extreme rows among those added so far."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, str], tuple[float, int]] = {}
        self._bad: dict[tuple[str, str], list[int]] = {}
        self._counts: dict[str, dict[float, list[int]] | None] = {}
        """How often each whole number occurs, and where first; None: too many, or no whole numbers."""
        self.read = 0

    def add_items(self, items: Sequence[Any], rows: Sequence[int]) -> None:
        """Add several rows, mappings or tuples; columns whose values have one shape at once."""
        self.read += len(items)
        for name, values in columns_of(items).items():
            self.add_column(name, stack_values(values), rows)

    def add_column(self, name: str, values: Sequence[Any], rows: Sequence[int]) -> None:
        """Add one column of several rows; an array of numbers at once. The rows are counted once by the caller."""
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "iufb" or not values.size:
            for row, value in zip(rows, values):
                self._add_value(name, value, row)
            return
        flat = values.reshape(len(values), -1)
        step = max(1, _AT_A_TIME // flat.shape[1])
        for start in range(0, len(flat), step):
            self._add_table(name, flat[start : start + step], rows[start : start + step])
        if flat.shape[1] == 1:
            self._add_counts(name, flat[:, 0], rows)

    def add_unreadable(self, row: int, failure: str) -> None:
        """Add a row that could not be read."""
        self.read += 1
        self._note("", f"cannot be read: {failure}", row)

    def found(self) -> list[OddRow]:
        """The rows, each once: those with unusable values first, then the rarest, then the ends of each column."""
        named: dict[int, OddRow] = {}
        for one in self.every():
            named.setdefault(one.row, one)
        return list(named.values())

    def every(self) -> Iterator[OddRow]:
        """The same, with a row for each of its oddities."""
        for (name, why), rows in self._bad.items():
            yield from (OddRow(row=row, column=name, why=why) for row in rows)
        yield from self._rare()
        yield from self._at_ends()

    def _rare(self) -> Iterator[OddRow]:
        for name, counts in self._counts.items():
            if not counts or len(counts) < 2:
                continue
            ordered = sorted((count, row, value) for value, (count, row) in counts.items())
            for count, row, value in ordered[:NAMED]:
                if count <= RARE:
                    yield OddRow(row=row, column=name, why=f"the value {value:g}, as {_others(count)}")

    def _at_ends(self) -> Iterator[OddRow]:
        for (name, why), (score, row) in self._ends.items():
            size = f"{abs(score):,.0f}" if why in _LENGTHS else f"{score if why == _VALUES[0] else -score:.6g}"
            yield OddRow(row=row, column=name, why=f"{why}, {size}" if why in (*_LENGTHS, *_VALUES) else why)

    def _add_table(self, name: str, table: np.ndarray, rows: Sequence[int]) -> None:
        finite = np.isfinite(table) if table.dtype.kind == "f" else None
        if finite is not None and not finite.all():
            for at in np.flatnonzero(~finite.all(axis=1))[:NAMED]:
                self._note(name, "a value that is NaN or infinite", rows[int(at)])
            table = np.where(finite, table, 0)
        most, least = table.max(axis=1).astype(np.float64), table.min(axis=1).astype(np.float64)
        self._end_of(name, _VALUES[0], most, rows)
        self._end_of(name, _VALUES[1], -least, rows)
        if table.shape[1] > 1:
            self._end_of(name, "the values that differ least", least - most, rows)

    def _end_of(self, name: str, why: str, scores: np.ndarray, rows: Sequence[int]) -> None:
        at = int(scores.argmax())
        self._end(name, why, float(scores[at]), rows[at])

    def _add_counts(self, name: str, column: np.ndarray, rows: Sequence[int]) -> None:
        if self._counts.get(name, {}) is None or np.unique(column[: MOST_VALUES * 2]).size > MOST_VALUES:
            self._counts[name] = None
            return
        values, first, counts = np.unique(column, return_index=True, return_counts=True)
        if len(values) > MOST_VALUES:
            self._counts[name] = None
            return
        for value, at, count in zip(values, first, counts):
            if math.isfinite(value):
                self._count(name, float(value), rows[int(at)], int(count))

    def _add_value(self, name: str, value: Any, row: int) -> None:
        if value is None:
            self._note(name, "no value", row)
        elif isinstance(value, str):
            self._length(name, len(value.split()), row)
        elif isinstance(value, (bool, int, float, np.number)):
            self._add_number(name, float(value), row)
        elif isinstance(value, (list, tuple)) or hasattr(value, "__array__"):
            self._add_sequence(name, value, row)

    def _add_number(self, name: str, number: float, row: int) -> None:
        if not math.isfinite(number):
            self._note(name, "a value that is NaN or infinite", row)
            return
        self._end(name, _VALUES[0], number, row)
        self._end(name, _VALUES[1], -number, row)
        self._count(name, number, row, 1)

    def _add_sequence(self, name: str, value: Any, row: int) -> None:
        try:
            array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
        except (ValueError, TypeError, RuntimeError):  # ragged within a row, or no numbers
            return
        if array.ndim == 0 and array.dtype.kind in "iufb":
            self._add_number(name, float(array), row)
            return
        self._length(name, len(array) if array.ndim else 0, row)
        if array.dtype.kind in "iufb" and array.size:
            self._add_table(name, array.reshape(1, -1), (row,))

    def _length(self, name: str, size: int, row: int) -> None:
        self._end(name, _LENGTHS[0], size, row)
        self._end(name, _LENGTHS[1], -size, row)

    def _end(self, name: str, why: str, score: float, row: int) -> None:
        known = self._ends.get((name, why))
        if known is None or score > known[0]:
            self._ends[name, why] = (score, row)

    def _note(self, name: str, why: str, row: int) -> None:
        rows = self._bad.setdefault((name, why), [])
        if len(rows) < NAMED:
            rows.append(row)

    def _count(self, name: str, value: float, row: int, count: int) -> None:
        counts = self._counts.setdefault(name, {})
        if counts is None or not float(value).is_integer():
            self._counts[name] = None
            return
        known = counts.setdefault(float(plain_number(value)), [0, row])
        known[0] += count
        if len(counts) > MOST_VALUES:
            self._counts[name] = None


def _others(count: int) -> str:
    return "no other row" if count == 1 else "1 other row" if count == 2 else f"{count - 1} other rows"


def extreme_rows(name: str, values: np.ndarray, rows: Sequence[int]) -> Extremes | None:
    """The rows of a column that are far from all others, in the feature where they are furthest; None if there are none.

    Args:
        values: (rows,) or (rows, ...); in rows of several axes or of many features the largest value counts.
        rows: the number of each row.
    """
    if len(values) < _FEWEST_ROWS or values.dtype.kind not in "iuf" or not values[0].size:
        return None
    table, kept = _reduced(values), np.arange(len(values))
    if not (np.isfinite(table.min(axis=0)).all() and np.isfinite(table.max(axis=0)).all()):
        kept = np.flatnonzero(np.isfinite(table).all(axis=1))
        table = table[kept]
    if len(table) < _FEWEST_ROWS:
        return None
    columns = ((feature, table[:, feature].astype(np.float64)) for feature in _suspected(table))
    found = [(one, feature) for feature, column in columns if (one := _in_feature(column)) is not None]
    if not found:
        return None
    (times, chosen), feature = max(found, key=lambda pair: pair[0][0])
    column = table[:, feature]
    others = column[~chosen]
    where = np.flatnonzero(chosen)
    return Extremes(
        column=name,
        feature=int(feature) if values.ndim == 2 and table.shape[1] > 1 else None,
        rows=tuple(rows[int(kept[i])] for i in where[:_MOST_NAMED]),
        count=len(where),
        counted=len(values),
        value=float(column[where[0]]),
        low=float(others.min()),
        high=float(others.max()),
        times=times,
    )


def _reduced(values: np.ndarray) -> np.ndarray:
    """(rows, features); of rows with several axes or many features the largest magnitude, with its sign."""
    flat = values.reshape(len(values), -1)
    if values.ndim <= 2 and flat.shape[1] <= _MOST_FEATURES:
        return flat
    largest = np.empty((len(flat), 1))
    step = max(1, _AT_A_TIME // flat.shape[1])
    for start in range(0, len(flat), step):
        part = flat[start : start + step]
        at = np.abs(part).argmax(axis=1)[:, None]
        largest[start : start + step] = np.take_along_axis(part, at, axis=1)
    return largest


def _suspected(table: np.ndarray) -> list[int]:
    """The features whose extremes are furthest, in units of half the distance between the quartiles."""
    sample = table[:: len(table) // _SAMPLED + 1].astype(np.float64)
    low, middle, high = np.percentile(sample, (25, 50, 75), axis=0)
    reach = np.maximum(table.max(axis=0) - middle, middle - table.min(axis=0))
    half = (high - low) / 2
    ratio = np.divide(reach, half, out=np.zeros_like(reach), where=half > 0)
    order = np.argsort(ratio)[::-1][:_LOOKED_AT]
    return [int(i) for i in order if ratio[i] >= _TIMES]


def _in_feature(column: np.ndarray) -> tuple[float, np.ndarray] | None:
    """How many times further than the others, and which rows; None if nothing is."""
    distance = np.abs(column - np.median(column))
    most = max(1, int(_FEW * len(column)))
    furthest = np.sort(np.partition(distance, len(column) - 1 - most)[len(column) - 1 - most :])
    gaps = np.divide(furthest[1:], furthest[:-1], out=np.zeros(most), where=furthest[:-1] > 0)
    chosen = distance >= furthest[1 + int(gaps.argmax())]
    times = float(gaps.max())
    if times < _TIMES:
        chosen = column == column[distance.argmax()]
        rest = float(distance[~chosen].max()) if not chosen.all() else 0.0
        times = float(distance.max()) / rest if rest and chosen.mean() <= _SAME else 0.0
    if times < _TIMES or np.unique(column[~chosen][:1000]).size < _FEWEST_VALUES:
        return None
    return times, chosen
