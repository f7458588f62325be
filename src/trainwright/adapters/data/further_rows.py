"""Reads on in a set where the dataset stage stopped, in search of extreme rows: as many as the time allows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from trainwright.adapters.data.reading import length
from trainwright.probes.splits.odd_rows import OddRows
from trainwright.seams.failures.blame import failure_of, passed_on, tolerated
from trainwright.tensors.items import reader_of
from trainwright.timing import now

# Rows that are read between two looks at the clock; a part of a set that one worker reads.
AT_A_TIME = 1_000
# A set that could not be read to its end is sampled in this many evenly spaced parts first.
PARTS = 64
# Datasets nest in each other only so deep.
MOST_WRAPPED = 8
# So many failing rows show what is wrong.
MOST_UNREADABLE = 4


def part_of_rows(data: Any, rows: Sequence[int]) -> OddRows:
    """The extreme ones of these rows, and those that cannot be read."""
    found = OddRows()
    items, numbers, unreadable = [], [], 0
    for row in rows:
        try:
            items.append(passed_on(reader_of(data), row))
            numbers.append(row)
        except Exception as error:  # the user's own dataset raised, which is a finding
            found.add_unreadable(row, str(failure_of(error)))
            unreadable += 1
            if unreadable >= MOST_UNREADABLE:
                break
    if items:
        found.add_items(items, numbers)
    return found


Reader = Callable[[Any, Sequence[Sequence[int]]], Iterator[OddRows]]
"""Reads parts of a set, one after another or in worker processes."""


def one_by_one(data: Any, parts: Sequence[Sequence[int]]) -> Iterator[OddRows]:
    """Read parts in this process."""
    return (part_of_rows(data, rows) for rows in parts)


def read_further(data: Any, rows: int, read: int, seconds: float, reader: Reader = one_by_one) -> OddRows:
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
    parts = [range(start, min(rows, start + AT_A_TIME)) for start in range(read, rows, AT_A_TIME)]
    for part in reader(data, _spread(parts)):
        found.join(part)
        if now() - started > seconds:
            break
    return found


def read_stream(stream: Any, seconds: float) -> tuple[OddRows, dict[int, Any], bool]:
    """The extreme rows of a stream, with their items, and whether it ended."""
    found, kept, started = OddRows(), dict[int, Any](), now()
    rows, items = itertools.count(), iter(())
    with tolerated():  # a stream that raises at once is reported with the batches
        items = passed_on(iter, stream)
    while True:
        some: list[Any] = []
        ended = False
        try:
            while len(some) < AT_A_TIME and now() - started <= seconds:
                some.append(passed_on(next, items))
        except StopIteration:
            ended = True
        except Exception:  # the user's own stream raised: what comes before it still counts
            ended = True
        numbers = list(itertools.islice(rows, len(some)))
        found.add_items(some, numbers)
        kept |= dict(zip(numbers, some))
        wanted = {one.row for one in found.found()}
        kept = {row: item for row, item in kept.items() if row in wanted or row < AT_A_TIME}
        if ended or now() - started > seconds:
            return found, kept, ended


def held_columns(data: Any, rows: int) -> Iterator[tuple[str, Sequence[Any]]]:
    """Arrays, tensors, frames' columns and lists that a set holds with one entry per row.

    They are only where to look: what the rows are, their items tell.
    """
    for _ in range(MOST_WRAPPED):
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
    first = sorted({int(i) for i in np.linspace(0, len(parts) - 1, PARTS)}) if len(parts) > PARTS else []
    chosen = set(first)
    return [*(parts[i] for i in first), *(part for i, part in enumerate(parts) if i not in chosen)]
