"""Whether reading rows changes what a data set stores: looked at when a set is first read, and tried once the run is over."""

from __future__ import annotations

import functools
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

import numpy as np

from trainwright.core import Place
from trainwright.rehearsal.record_parts import Rewritten
from trainwright.rehearsal.recorder import Recorder
from trainwright.seams.source.places import is_users, place_of

# Sets that are followed, what is stored in one, and how deep it is looked for.
MOST_SETS, MOST_STORED, MOST_DEPTH = 6, 24, 3
# Bytes of an array, and entries of a list, that are compared; a longer one is sampled.
MOST_BYTES, MOST_ENTRIES = 16_000_000, 2_000
# Rows that are read again.
READ_AGAIN = 6


class StoredRows:
    """Follows what the sets store that loaders, and Keras, read."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._sets: dict[int, tuple[Any, Callable[[Any], Any] | None, dict[str, int]]] = {}
        recorder.on_finish.append(recorder.watching(self.finish))

    def begin(self, rows: Any, collate: Callable[[Any], Any] | None) -> None:
        """A set is read; the first time, what it stores is noted. It is held until the run's end, to be read again."""
        if id(rows) in self._sets or len(self._sets) >= MOST_SETS or not hasattr(rows, "__getitem__"):
            return
        self._sets[id(rows)] = rows, collate, {name: _mark(value) for name, value in _stored(rows)}

    def finish(self) -> None:
        """Read some rows of each set again, and note those whose reading changes what is stored."""
        for rows, collate, before in self._sets.values():
            changed = {name for name, value in _stored(rows) if before.get(name) not in (None, _mark(value))}
            if changed:
                self._recorder.guard(functools.partial(self._try, rows, collate, changed))

    def _try(self, rows: Any, collate: Callable[[Any], Any] | None, changed: set[str]) -> None:
        if not hasattr(rows, "__len__"):
            return
        size = len(rows)
        numbers = np.unique(np.linspace(0, size - 1, READ_AGAIN).astype(np.int64)).tolist()

        def read() -> Any:
            items = [rows[number] for number in numbers]
            return collate(items) if collate is not None else items

        read()  # what holds the batch that was read last holds the same one after the next time
        marks = _marks(rows, changed)
        read()
        held = {name for name, value in _stored(rows) if name in marks and _mark(value) != marks[name]}
        held = {name for name, value in _stored(rows) if name in held and _are_rows(value, size)}
        if not held:
            return
        lines = _Lines(lambda: _marks(rows, held))
        with lines:
            read()
        if lines.where is not None:
            self._recorder.record.rewritten.append(
                Rewritten(name=type(rows).__name__, held=min(held), size=size, where=lines.where)
            )


def _marks(rows: Any, names: set[str]) -> dict[str, int]:
    return {name: _mark(value) for name, value in _stored(rows) if name in names}


class _Lines:
    """Follows the user's lines, until what is stored changes: the line before is the one that wrote."""

    def __init__(self, read: Callable[[], dict[str, int]]) -> None:
        self._read, self._marks = read, read()
        self._last: Place | None = None
        self.where: Place | None = None

    def __enter__(self) -> None:
        sys.settrace(self._call)

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if self.where is None and is_users(frame.f_code.co_filename) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if self.where is None and event in ("line", "return"):
            if self._last is not None and self._read() != self._marks:
                self.where = self._last
            self._last = place_of(frame)
        return self._line


def _stored(rows: Any) -> Iterator[tuple[str, Any]]:
    """Arrays, tensors, tables and lists behind a set, by the names of its attributes."""
    todo = [("", rows, 0)]
    seen: set[int] = set()
    found = 0
    while todo and found < MOST_STORED:
        name, value, depth = todo.pop(0)
        if id(value) in seen:
            continue
        seen.add(id(value))
        if _is_table(value):
            found += 1
            yield name or type(value).__name__, value
        elif isinstance(value, tuple) and depth < MOST_DEPTH:
            todo += [(f"{name}[{number}]", inner, depth + 1) for number, inner in enumerate(value[:MOST_STORED])]
        elif depth < MOST_DEPTH and isinstance(held := getattr(value, "__dict__", None), dict):
            todo += [(f"{name}.{key}".lstrip("."), inner, depth + 1) for key, inner in list(held.items())]


def _is_table(value: Any) -> bool:
    if isinstance(value, (list, np.ndarray)):
        return True
    return _name_kind(value) in ("torch.Tensor", "pandas.DataFrame", "pandas.Series")


def _name_kind(value: Any) -> str:
    """The name of its class behind that of its package: scripts have classes of such names, too."""
    return f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"


def _mark(value: Any, depth: int = 0) -> int:
    """A number that is the same for the same values."""
    if isinstance(value, (list, tuple)):
        step = max(1, len(value) // MOST_ENTRIES)
        return (
            hash((len(value), *(_mark(one, depth + 1) for one in value[::step]))) if depth < MOST_DEPTH else len(value)
        )
    if isinstance(value, Mapping):
        return hash(tuple((str(key), _mark(one, depth + 1)) for key, one in value.items())) if depth < MOST_DEPTH else 0
    if isinstance(value, (str, bytes, int, float, bool)):
        return hash(value)
    array = _array_of(value)
    if array is None:
        return 0
    if array.dtype == object:
        return hash(tuple(map(str, array.ravel()[:: max(1, array.size // MOST_ENTRIES)].tolist())))
    flat = np.ascontiguousarray(array if array.nbytes <= MOST_BYTES else array[:: array.nbytes // MOST_BYTES + 1])
    return zlib.crc32(flat.tobytes()) if flat.size else 0


def _array_of(value: Any) -> Any:
    """A tensor's, a table's or an array's values; None: it has none."""
    if isinstance(value, (np.ndarray, np.generic)):
        return np.atleast_1d(value)
    if _name_kind(value) == "torch.Tensor":
        plain = value.detach().cpu()
        return np.atleast_1d((plain.float() if plain.is_floating_point() else plain).numpy())
    if _name_kind(value) in ("pandas.DataFrame", "pandas.Series"):
        return np.atleast_1d(value.to_numpy())
    return None


def _are_rows(stored: Any, size: int) -> bool:
    """Whether it holds several values a row: a count of readings holds one."""
    array = _array_of(stored)
    if array is not None:
        return bool(array.ndim > 1)
    return not isinstance(stored[0] if stored else 0, (int, float))
