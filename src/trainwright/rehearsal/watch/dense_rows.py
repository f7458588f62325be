"""Rows whose target is as large as their input (the mask of a picture, a label for each step), drawn several times."""

from __future__ import annotations

import functools
import itertools
import time
import zlib
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.core import Place
from trainwright.rehearsal.record import Floats
from trainwright.rehearsal.record_parts import DrawnAgain
from trainwright.rehearsal.recorder import Recorder
from trainwright.seams.source.places import definition_place

# Sets that are followed, rows of each, draws of a row, values of a row, and columns beside the first.
MOST_SETS, MOST_ROWS, MOST_DRAWS, MOST_VALUES, MOST_COLUMNS = 6, 32, 3, 4_000_000, 3
# The smallest side of a picture and the shortest sequence; what is kept of them is averaged down to these.
LEAST_SIDE, LEAST_LENGTH, SIDE, LENGTH = 8, 16, 32, 256
# With so few different values, and so many values for each, an array holds labels: what counts is where they change.
MOST_LABELS, OF_A_LABEL = 64, 4
# Rows that were drawn once are read again when the run is over: so many at a time, for so many seconds.
READ_AT_ONCE, MOST_SECONDS = 8, 3.0

Columns = Mapping[str, Any]


@dataclass
class _DenseSet:
    where: Place | None
    read: Callable[[list[int]], Columns] | None
    draws: dict[int, list[dict[str, tuple[bool, Floats]]]] = field(default_factory=dict)
    """Of each row: by the columns' names whether they hold labels, and their small planes."""

    def draw(self, columns: Columns, numbers: Sequence[int] | None) -> bool:
        """Note a draw of rows, unless they share no picture or sequence. Without numbers they are told apart by their values,
        in whatever order."""
        axes = _shared_axes(tuple((name, tuple(column.shape[1:])) for name, column in columns.items()))
        for place in range(len(columns[next(iter(axes))]) if axes else 0):
            if numbers is not None and self._draws_of(int(numbers[place])) is None:
                continue
            values = {name: columns[name][place] for name in axes}
            rows = {k: np.asarray(v.detach().cpu().float() if hasattr(v, "detach") else v) for k, v in values.items()}
            row = next(iter(rows.values()))
            key = zlib.crc32(np.sort(row, axis=None).tobytes()) if numbers is None else int(numbers[place])
            if (draws := self._draws_of(key)) is not None:
                draws.append({name: _plane(row, axes[name]) for name, row in rows.items()})
                self.draws[key] = draws
        return bool(axes)

    def _draws_of(self, key: int) -> list[dict[str, tuple[bool, Floats]]] | None:
        """The draws of a row so far; None where no further one is kept."""
        draws = self.draws.get(key, [] if len(self.draws) < MOST_ROWS else None)
        return draws if draws is not None and len(draws) < MOST_DRAWS else None

    def read_again(self) -> None:
        """Read rows again that were drawn once."""
        end = time.perf_counter() + MOST_SECONDS
        once = [number for number, draws in self.draws.items() if len(draws) < 2]
        while self.read is not None and once and time.perf_counter() < end:
            numbers, once = once[:READ_AT_ONCE], once[READ_AT_ONCE:]
            self.draw(self.read(numbers), numbers)

    def pairs(self, first: str, second: str, targets: Container[str]) -> list[tuple[Floats, Floats, Floats, Floats]]:
        """Both columns of two draws of a row that differ, if one of them is a target or looks like one."""
        found = []
        for draws in self.draws.values():
            full = [(one[first], one[second]) for one in draws if first in one and second in one]
            for ((kind, x), (kind_y, y)), ((_, x2), (_, y2)) in itertools.combinations(full, 2):
                is_target = first in targets or second in targets or kind != kind_y
                if is_target and x.shape == x2.shape == y.shape == y2.shape and not (_same(x, x2) and _same(y, y2)):
                    found.append((x, x2, y, y2))
        return found


class DenseRows:
    """Keeps draws of a few rows of each set, small.

    Args:
        targets: the names of columns that are known to be targets, once the run is over.
    """

    def __init__(self, recorder: Recorder, targets: Callable[[], Container[str]]) -> None:
        self._recorder, self._targets = recorder, targets
        self._sets: dict[int, _DenseSet] = {}
        recorder.on_finish.append(recorder.watching(self.finish))

    def note(
        self, rows: Any, columns: Columns, numbers: Sequence[int] | None, where: Place | None, read: Any = None
    ) -> bool:
        """A batch was drawn from a set. Returns whether its rows are kept.

        Args:
            where: the line to name where no code of the user's reads a row.
            read: reads rows again, by their numbers; None: they cannot be.
        """
        number = self._recorder.number_of(rows)
        if number not in self._sets and len(self._sets) >= MOST_SETS:
            return False
        return self._sets.setdefault(number, _DenseSet(_reader(rows) or where, read)).draw(columns, numbers)

    def finish(self) -> None:
        """Read rows again that were drawn once, and write those that another draw changes."""
        for known in self._sets.values():
            self._recorder.guard(known.read_again)
            names = list(dict.fromkeys(name for draws in known.draws.values() for one in draws for name in one))
            for name in names[1 : MOST_COLUMNS + 1]:
                if pairs := known.pairs(names[0], name, self._targets()):
                    made = DrawnAgain(columns=(names[0], name), where=known.where, pairs=pairs)
                    self._recorder.record.drawn_again.append(made)


def _same(one: Floats, other: Floats) -> bool:
    return bool(np.array_equal(one, other))


@functools.lru_cache
def _shared_axes(columns: tuple[tuple[str, tuple[int, ...]], ...]) -> Mapping[str, tuple[int, ...]]:
    """The axes of a picture or of a sequence that several columns share, by the columns' names; none: they share none.
    Columns are given as names and the shapes of their rows."""
    shapes = dict(columns)
    for axes_of in (_pictures, _sequences):
        places = {name: axes_of(own) for name, own in shapes.items() if np.prod(own) <= MOST_VALUES}
        for size in [[shapes[name][axis] for axis in axes] for name, many in places.items() for axes in many]:
            found = {n: at for n, many in places.items() for at in many if [shapes[n][axis] for axis in at] == size}
            if len(found) > 1:
                return found
    return {}


def _pictures(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    pairs = [(last - 1, last) for last in (len(shape) - 1, len(shape) - 2) if last > 0]
    return [pair for pair in pairs if min(shape[axis] for axis in pair) >= LEAST_SIDE]


def _sequences(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [(axis,) for axis, size in enumerate(shape) if size >= LEAST_LENGTH] if len(shape) <= 2 else []


def _plane(row: NDArray[Any], axes: tuple[int, ...]) -> tuple[bool, Floats]:
    """The row as a small picture, or a line; of labels, where they change, as turning may rename left and right."""
    values = np.nan_to_num(np.moveaxis(row, axes, range(-len(axes), 0)).astype(np.float64))
    values = values.reshape(-1, *(values.shape[-2:] if len(axes) > 1 else (1, values.shape[-1])))
    some = values.ravel()[:: -(-values.size // 4096)]
    has_labels = len(np.unique(some)) <= min(MOST_LABELS, some.size // OF_A_LABEL)
    if has_labels:
        values = np.sqrt(sum(np.gradient(values, axis=axis) ** 2 for axis in (1, 2) if values.shape[axis] > 1))
    plane: Floats = values.mean(0)
    for axis, most in ((0, SIDE), (1, SIDE if len(axes) > 1 else LENGTH)):
        step = -(-plane.shape[axis] // most)
        count = plane.shape[axis] // step
        cut = (plane.shape[axis] - count * step) // 2
        kept = np.moveaxis(plane, axis, 0)[cut : cut + count * step]
        plane = np.moveaxis(kept.reshape(count, step, -1).mean(1), 0, axis)
    return has_labels, plane.astype(np.float32)


def _reader(rows: Any) -> Place | None:
    """Where the user's own set reads a row: the set itself, or one that it wraps."""
    while rows is not None:
        if (place := definition_place(getattr(type(rows), "__getitem__", None))) is not None:
            return place
        rows = getattr(rows, "dataset", None)
    return None
