"""Reads datasets: Hugging Face, torch, sequences and iterables."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainwright.core import Failure
from trainwright.probes.splits.census import digest
from trainwright.probes.splits.values import evenly, plain_values
from trainwright.seams.failures.blame import failure_of, passed_on
from trainwright.stages import CENSUS_LABELS, SAMPLED_ITEMS, Split
from trainwright.tensors.items import length, reader_of
from trainwright.timing import now

# A column of numbers is read in full (to check for NaN and infinity) if it has at most this many values.
LARGEST_COLUMN = 50_000_000
# Memory limit for the sample of whole items, and for each column kept from items that are read one by one.
SAMPLE_BYTES = 64 * 2**20
FEWEST_ITEMS = 16
# Texts up to this length are class names and the like, and are counted over a million rows.
LONGEST_NAME = 48


def read_split(name: str, dataset: Any, *, seconds: float = 6.0) -> Split:
    """Read a sample of a dataset, and whole columns if that is cheap.

    Args:
        seconds: time limit for reading items one by one.
    """
    if dataset is None:
        return Split(name=name, rows=0, kind="none")
    rows = length(dataset)
    if rows is None:
        return _read_iterable(name, dataset, seconds)
    columns, class_names = whole_columns(dataset)
    base: dict[str, Any] = {"name": name, "rows": rows, "class_names": class_names}
    passing = Passing(rows, keeping=not columns)
    started = now()
    for row in range(min(rows, CENSUS_LABELS)) if not columns else ():
        if now() - started > seconds or not passing.read(dataset, row):
            break
    for row in evenly(range(rows), SAMPLED_ITEMS):
        late = now() - started > 1.5 * seconds and len(passing.items) >= FEWEST_ITEMS
        if passing.failure is not None or late:
            break
        if row not in passing.rows_kept and (not passing.items or row in passing.sampled):
            passing.read(dataset, row)
    return passing.split(base, columns)


class Passing:
    """Collects items that are read one by one: a sample of whole items, small columns of all items, and hashes.

    Args:
        rows: the total number of rows.
        keeping: also keep columns; False: only the sample.
    """

    def __init__(self, rows: int, *, keeping: bool) -> None:
        self.items: list[Mapping[str, Any]] = []
        self.rows_kept: dict[int, None] = {}
        self.failure: Failure | None = None
        self.failed_row: int | None = None
        self._rows = rows
        self._keeping = keeping
        self._next = 0
        self._columns: dict[str, list[Any]] = {}
        self._digests: dict[str, list[int]] = {}
        self._non_finite: dict[str, dict[int, int]] = {}
        self.sampled: frozenset[int] = frozenset()

    def read(self, dataset: Any, row: int) -> bool:
        """Read one row; returns whether that succeeded."""
        try:
            item = as_mapping(passed_on(reader_of(dataset), row))
        except Exception as error:  # the user's own dataset raised, which is a finding
            self.failure, self.failed_row = failure_of(error), row
            return False
        self.add(item, row)
        return True

    def add(self, item: Mapping[str, Any], row: int) -> None:
        """Record an item; its tensors as they are in the host's memory."""
        item = {name: _on_host(value) for name, value in item.items()}
        if not self.items:
            self._begin(item)
        if row in self.sampled:
            self.items.append(item)
            self.rows_kept[row] = None
        if not self._keeping or row != self._next:
            return
        self._next += 1
        for name, values in self._columns.items():
            values.append(item.get(name))
        for name, digests in self._digests.items():
            value = plain_values([item.get(name)])[0]
            digests.append(digest(value))
            if isinstance(value, np.ndarray) and value.dtype.kind == "f" and (bad := int((~np.isfinite(value)).sum())):
                self._non_finite[name][row] = bad

    def _begin(self, first: Mapping[str, Any]) -> None:
        """Decide from the first item which columns are small enough to keep."""
        sizes = {name: size_of(value) for name, value in first.items()}
        most = min(SAMPLED_ITEMS, max(FEWEST_ITEMS, SAMPLE_BYTES // max(1, sum(sizes.values()))))
        self.sampled = frozenset(evenly(evenly(range(self._rows), SAMPLED_ITEMS), int(most)))
        rows = min(self._rows, CENSUS_LABELS)
        small = {n for n, size in sizes.items() if self._keeping and size * rows <= SAMPLE_BYTES}
        self._columns = {n: [] for n in first if n in small}
        self._digests = {n: [] for n in first if n not in small and self._keeping}
        self._non_finite = {n: {} for n in self._digests}

    def split(self, base: Mapping[str, Any], columns: Mapping[str, Sequence[Any]]) -> Split:
        """The rows that were read."""
        columns = columns or self._columns
        order = sorted(range(len(self.items)), key=list(self.rows_kept).__getitem__)
        return Split(
            items=[self.items[i] for i in order],
            indices=sorted(self.rows_kept),
            columns=columns,
            read=max((len(c) for c in columns.values()), default=0),
            digests=self._digests,
            non_finite=self._non_finite,
            failure=self.failure,
            failed_row=self.failed_row,
            **base,
        )


def _on_host(value: Any) -> Any:
    """A tensor on a device as a copy in the host's memory; everything else as it is."""
    device = getattr(value, "device", None)
    return value.detach().cpu() if hasattr(value, "detach") and getattr(device, "type", "cpu") != "cpu" else value


def size_of(value: Any) -> int:
    """The approximate size of an item's value in bytes."""
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if isinstance(value, str):
        return len(value) + 50
    if isinstance(value, (list, tuple)):
        return 56 + len(value) * (8 + size_of(value[0])) if value else 56
    if hasattr(value, "size") and hasattr(value, "getbands"):  # a Pillow image
        return int(np.prod(value.size)) * len(value.getbands())
    return 32


def as_mapping(item: Any) -> dict[str, Any]:
    """An item's values by column name, or by "0", "1" for a tuple."""
    if isinstance(item, Mapping) or hasattr(item, "keys"):
        return {str(k): item[k] for k in item.keys()}  # noqa: SIM118 (a BatchEncoding is no Mapping)
    if isinstance(item, (tuple, list)):
        return {str(i): v for i, v in enumerate(item)}
    return {"0": item}


def whole_columns(dataset: Any) -> tuple[dict[str, Sequence[Any]], dict[str, Sequence[str]]]:
    """Columns that can be read without building items, and their class names if they have any."""
    if _is_hugging_face(dataset):
        return _arrow_columns(dataset)
    return _torch_columns(dataset) if "torch" in sys.modules else ({}, {})


def _torch_columns(dataset: Any) -> tuple[dict[str, Sequence[Any]], dict[str, Sequence[str]]]:
    from torch.utils.data import ConcatDataset, Subset, TensorDataset

    reads = getattr(type(dataset), "__getitem__", None)  # if a subclass overrides it, items are read instead
    if reads is TensorDataset.__getitem__:
        return {str(i): a.detach().cpu().numpy() for i, a in enumerate(dataset.tensors)}, {}
    if reads is Subset.__getitem__:
        columns, names = whole_columns(dataset.dataset)
        return {n: _take(c, dataset.indices) for n, c in columns.items()}, names
    if reads is ConcatDataset.__getitem__:
        parts = [whole_columns(d) for d in dataset.datasets]
        shared = [n for n in parts[0][0] if all(n in columns for columns, _ in parts)] if parts else []
        return {n: _join([columns[n] for columns, _ in parts]) for n in shared}, parts[0][1] if parts else {}
    return {}, {}


def _take(column: Sequence[Any], rows: Sequence[int]) -> Sequence[Any]:
    if isinstance(column, np.ndarray):
        return column[np.asarray(rows, dtype=np.int64)]
    return [column[i] for i in rows]


def _join(parts: Sequence[Sequence[Any]]) -> Sequence[Any]:
    if all(isinstance(p, np.ndarray) and p.shape[1:] == parts[0].shape[1:] for p in parts):
        joined: Any = np.concatenate([np.asarray(p) for p in parts])
        return joined  # type: ignore[no-any-return]
    return [v for part in parts for v in part]


def _is_hugging_face(dataset: Any) -> bool:
    return hasattr(dataset, "column_names") and hasattr(dataset, "features") and hasattr(dataset, "data")


def _arrow_columns(dataset: Any) -> tuple[dict[str, Sequence[Any]], dict[str, Sequence[str]]]:
    if dataset.format.get("type") == "custom":  # set_transform: the stored columns differ from what is read
        return {}, {}
    plain = dataset.with_format(None)
    columns: dict[str, Sequence[Any]] = {}
    for name in plain.column_names:
        part = plain.select_columns([name])
        first = part[0][name] if len(part) else None
        if isinstance(first, dict) or (first is not None and not isinstance(first, (int, float, str, bool, list))):
            continue  # images and the like are read as items
        rows = _rows_to_read(first)
        values = _column_values(part.select(range(rows)) if len(part) > rows else part, first)
        if values is not None:
            columns[name] = values
    names = {n: f.names for n, f in dataset.features.items() if getattr(f, "names", None)}
    return columns, names


def _rows_to_read(first: Any) -> int:
    """How many rows of a column to read, judged by its first value: all for scalars, a part for tokens and texts."""
    if first is None or isinstance(first, (int, float)):
        return LARGEST_COLUMN
    if isinstance(first, str):
        return 20 * CENSUS_LABELS if len(first) <= LONGEST_NAME else CENSUS_LABELS
    inner, size = first, 1
    while isinstance(inner, list) and inner:
        inner, size = inner[0], size * len(inner)
    return max(CENSUS_LABELS, LARGEST_COLUMN // size) if isinstance(inner, float) else CENSUS_LABELS


def _column_values(part: Any, first: Any) -> Sequence[Any] | None:
    """The column as a numpy array if it is flat or its rows have one size, otherwise as a list."""
    stored = part.data.column(0)
    if part._indices is not None:  # reading `part[:]` through chosen rows takes 5 s per million
        stored = stored.take(part._indices.column(0))
    chunks = stored.combine_chunks()
    if isinstance(first, list):
        return _list_rows(chunks)
    if isinstance(first, (int, float)) and chunks.null_count == 0:
        numbers: Sequence[Any] = chunks.to_numpy(zero_copy_only=False)
        return numbers
    values: Sequence[Any] = chunks.to_pylist()
    return values


def _list_rows(chunks: Any) -> Sequence[Any] | None:
    """Rows of a list column: one array if all have one size, otherwise views of a flat array of numbers."""
    chunks = getattr(chunks, "storage", chunks)  # Array2D and similar are extensions of lists
    table: Sequence[Any] | None = _uniform(chunks) if chunks.null_count == 0 else None
    if table is not None:
        return table
    if not hasattr(chunks, "offsets"):
        return None
    flat_values = chunks.values
    if not str(flat_values.type).startswith(("int", "uint", "float", "double", "half")) or chunks.null_count:
        rows: Sequence[Any] = chunks.to_pylist() if len(flat_values) < LARGEST_COLUMN // 100 else []
        return rows or None
    flat, offsets = flat_values.to_numpy(zero_copy_only=False), chunks.offsets.to_numpy()
    return [flat[a:b] for a, b in itertools.pairwise(offsets)]


def _uniform(chunks: Any) -> Any:
    """Nested lists of numbers as one array (rows, ...), if all lists of a level have one length."""
    shape = [len(chunks)]
    while hasattr(chunks.type, "value_type"):
        if chunks.null_count:
            return None
        if hasattr(chunks, "offsets"):
            sizes = np.unique(np.diff(chunks.offsets.to_numpy()))
            if sizes.size != 1:
                return None
            shape.append(int(sizes[0]))
        else:
            shape.append(int(chunks.type.list_size))
        chunks = chunks.flatten()
    if not str(chunks.type).startswith(("int", "uint", "float", "double", "half")) or chunks.null_count:
        return None
    return np.asarray(chunks.to_numpy(zero_copy_only=False)).reshape(shape)


def _read_iterable(name: str, dataset: Any, seconds: float) -> Split:
    passing = Passing(SAMPLED_ITEMS, keeping=False)
    started = now()
    base: dict[str, Any] = {"name": name, "kind": "iterable"}
    ended = False
    try:
        stream = passed_on(iter, dataset)
        for row in range(SAMPLED_ITEMS):
            passing.add(as_mapping(passed_on(next, stream)), row)
            if now() - started > seconds:
                break
    except StopIteration:
        ended = True
    except Exception as error:  # the user's own dataset raised
        passing.failure, passing.failed_row = failure_of(error), len(passing.items)
    return passing.split({**base, "rows": len(passing.items) if ended else None}, {})


@dataclass(frozen=True)
class Named:
    """An object of the user's script and the expression that reaches it."""

    expression: str
    value: Any


def objects_in_scope(scope: Mapping[str, Any]) -> Iterator[Named]:
    """The script's objects, and the members of its dictionaries (`tokenized["train"]`)."""
    for name, value in scope.items():
        if name.startswith("_") or isinstance(value, type):
            continue
        yield Named(name, value)
        if isinstance(value, dict) and len(value) <= 16:
            for key, member in value.items():
                if isinstance(key, str):
                    yield Named(f'{name}["{key}"]', member)
