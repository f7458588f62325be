"""The rows with which a loss first stopped being finite, and where the first of them came from."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.adapters.data.source_cells import find_origin
from trainwright.core import Place
from trainwright.rehearsal.record_parts import Broken
from trainwright.rehearsal.recorder import Recorder
from trainwright.seams.source.places import is_users

# Rows of the batch that are named.
MOST_NAMED = 5


class BrokenRows:
    """Looks at rows once, when a loss is not finite for the first time."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._rows: Any = None
        self._scope: dict[str, Any] = {}

    def is_wanted(self) -> bool:
        """Whether none were looked at before."""
        return self._recorder.record.broken is None

    def look(
        self, columns: Iterable[tuple[str, NDArray[Any]]], numbers: Sequence[int] | None, rows: Any, size: int
    ) -> bool:
        """Note the rows of a batch, or of a set, that hold a number that is not finite; returns whether there are any.

        Args:
            numbers: the rows' numbers in their set; None: they are not known.
            rows: the set.
            size: how many rows it has.
        """
        self._recorder.record.broken = Broken()
        for name, values in columns:
            broken = ~np.isfinite(values.reshape(len(values), -1))
            found = broken.any(1).nonzero()[0].tolist()
            if not found:
                continue
            place = int(broken[found[0]].argmax())
            self._recorder.record.broken = Broken(
                rows=tuple(row if numbers is None else int(numbers[row]) for row in found[:MOST_NAMED]),
                count=len(found),
                is_numbered=numbers is not None,
                column=name,
                position=place,
                value=float(values.reshape(len(values), -1)[found[0], place]),
                data=type(rows).__name__,
                size=size,
            )
            if self._recorder.sampler is not None:
                number = None if numbers is None else int(numbers[found[0]])
                self._recorder.sampler.broken = number, [(name, np.array(values[found[0]]))]
            self._rows, self._scope = rows, dict(scope_of(sys._getframe(1)))
            return True
        return False

    def finish(self) -> None:
        """After the run, find where the first row came from: reading it again may draw random numbers."""
        broken = self._recorder.record.broken
        if broken is None or not broken.is_numbered or not broken.rows:
            return
        rows, number = self._rows, broken.rows[0]
        while hasattr(rows, "dataset") and hasattr(rows, "indices"):  # a subset
            rows, number = rows.dataset, int(rows.indices[number])
        cell = find_origin(rows, number, self._scope)
        if cell is not None:
            column = f', column "{cell.column}"' if cell.column else ""
            value = f" ({cell.value})" if cell.value else ""
            broken.origin = f"row {cell.row:,} of {cell.expression}{column}{value}"
            if cell.file and cell.line is not None:
                broken.where = Place(cell.file, cell.line)


def scope_of(frame: Any) -> Iterator[tuple[str, Any]]:
    """The variables of the user's code on the stack; those of its innermost function come last, and so stand."""
    frames = []
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            frames.append(frame)
        frame = frame.f_back
    for one in reversed(frames):
        yield from one.f_globals.items()
    for one in reversed(frames):
        yield from one.f_locals.items()
