"""Loaders: which rows of which set they draw, and what lies in their batches."""

from __future__ import annotations

import contextlib
import functools
import sys
import weakref
from typing import Any

import torch

from trainwright.core import Place
from trainwright.rehearsal.record import Drawn
from trainwright.rehearsal.watch.dense_rows import DenseRows
from trainwright.rehearsal.watch.raw import RawTables
from trainwright.rehearsal.watch.stored_rows import StoredRows
from trainwright.rehearsal.watch.torch.samples import is_plain
from trainwright.rehearsal.watch.torch.state import HeldTensor, LoaderBatch, LoaderPass, WatchState
from trainwright.rehearsal.watch.torch.watch import TorchWatch
from trainwright.seams.listening.doors import watch_door
from trainwright.seams.source.places import nearest_place
from trainwright.tensors.items import length


class Loaders:
    """Follows the iterators of loaders."""

    def __init__(self, state: WatchState) -> None:
        self._state = state
        self._readings: weakref.WeakKeyDictionary[Any, LoaderPass] = weakref.WeakKeyDictionary()
        self._count = 0
        self._identities: dict[Any, Any] = {}
        self._raw = RawTables(state.recorder)
        self._stored = StoredRows(state.recorder)
        self._dense = DenseRows(state.recorder, state.labels.values)

    def begin(self, iterator: Any, loader: Any = None) -> None:
        """A loader is read from its start."""
        self._count += 1
        self._readings[iterator] = LoaderPass(self._count, nearest_place(sys._getframe(1)))
        if loader is not None and not loader.num_workers:  # a worker changes rows of its own
            self._stored.begin(loader.dataset, loader.collate_fn)
        self._state.reads_ahead = self._state.reads_ahead or "Shard" in type(loader).__name__

    def index(self, iterator: Any, rows: Any) -> None:
        """Rows that the iterator asks for."""
        reading = self._readings.get(iterator)
        if reading is not None:
            reading.rows.append(list(rows) if isinstance(rows, (list, tuple)) else [rows])

    def batch(self, iterator: Any, data: Any) -> None:
        """A batch that the loader gives."""
        reading = self._readings.get(iterator)
        rows = reading.rows.popleft() if reading is not None and reading.rows else None
        numbers = [int(row) for row in rows] if rows and all(map(_is_number, {*map(type, rows)})) else None
        drawn = self._drawn(iterator._dataset, numbers or [])
        if reading is not None and drawn.where is None:
            drawn.where = reading.where
        if reading is not None:
            reading.give(drawn, numbers or [])
        columns: dict[str, HeldTensor] = {}
        _collect(columns, "", data, 0)
        held = LoaderBatch(columns, drawn, numbers, reading, iterator._dataset, weakref.ref(iterator))
        self._state.add_batch(held)
        if numbers:
            look = functools.partial(self._raw.look, drawn.data, iterator._dataset, drawn.size, self._state.tables)
            self._state.recorder.guard(look)
            self._note_dense(iterator, columns, numbers, drawn.where)

    def _note_dense(
        self, iterator: Any, columns: dict[str, HeldTensor], numbers: list[int], where: Place | None
    ) -> None:
        data, collate = iterator._dataset, iterator._collate_fn

        def read(wanted: list[int]) -> dict[str, Any]:
            found: dict[str, HeldTensor] = {}
            with contextlib.suppress(Exception):  # the script is over: what its set reads from may be gone
                _collect(found, "", collate([data[number] for number in wanted]), 0)
            return _whole(found, len(wanted))

        self._dense.note(data, _whole(columns, len(numbers)), numbers, where, read)

    def _drawn(self, data: Any, numbers: list[int]) -> Drawn:
        identity = self._identity(data)
        known = data if identity is None else self._identities.setdefault(identity, identity)
        return self._state.recorder.draw(known, length(data) or 0, numbers, type(data).__name__)

    def _identity(self, data: Any) -> Any:
        """The same for sets that are made anew around the same rows; None: the set itself."""
        if isinstance(getattr(data, "_fingerprint", None), str):
            return "fingerprint", data._fingerprint
        tensors = getattr(data, "tensors", None)
        if isinstance(tensors, tuple) and tensors and all(is_plain(t) for t in tensors):
            return "tensors", *(self._state.recorder.number_of(t) for t in tensors)
        return None


def _is_number(kind: type) -> bool:
    return hasattr(kind, "__index__") and not issubclass(kind, bool)


def _whole(columns: dict[str, HeldTensor], count: int) -> dict[str, Any]:
    """The columns that have so many rows."""
    held = {name: column.get() for name, column in columns.items() if column.shape[:1] == (count,)}
    return {name: tensor for name, tensor in held.items() if tensor is not None and not tensor.is_complex()}


def _collect(columns: dict[str, HeldTensor], name: str, value: Any, depth: int) -> None:
    if isinstance(value, torch.Tensor):
        if is_plain(value):
            columns[name] = HeldTensor.of(value)
    elif depth < 3 and hasattr(value, "items") and hasattr(value, "keys"):
        for key, inner in value.items():
            _collect(columns, f"{name}.{key}" if name else str(key), inner, depth + 1)
    elif depth < 3 and isinstance(value, (list, tuple)) and len(value) <= 24:
        for number, inner in enumerate(value):
            _collect(columns, f"{name}[{number}]", inner, depth + 1)


def watch_loaders(watch: TorchWatch, module: Any) -> None:
    """Look at what the loaders of `torch.utils.data.dataloader` draw."""
    state = watch.state
    found = Loaders(state)
    kind = module._BaseDataLoaderIter
    watching = state.recorder.watching
    begin, index, batch = watching(found.begin), watching(found.index), watching(found.batch)

    def passed_on_start(go_on: Any, self: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, loader)
        go_on(self, loader, *args, **kwargs)
        if not state.is_off():
            watch.close.begin_loader(loader, self)

    def passed_on_reset(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self)
        go_on(self, *args, **kwargs)

    def passed_on_index(go_on: Any, self: Any) -> Any:
        rows = go_on(self)
        index(self, rows)
        return rows

    def passed_on_batch(go_on: Any, self: Any) -> Any:
        data = go_on(self)
        if not state.is_off():
            batch(self, data)
        return data

    watch_door(kind, "__init__", passed_on_start)
    watch_door(kind, "_reset", passed_on_reset)
    watch_door(kind, "_next_index", passed_on_index)
    watch_door(kind, "__next__", passed_on_batch)
