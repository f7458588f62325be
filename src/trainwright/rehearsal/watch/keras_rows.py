"""Rows given to a Keras model: taken from arrays and from streams of batches, told apart, and as plain inputs."""

from __future__ import annotations

import hashlib
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.rehearsal.record import TOKEN_GROUPS, Floats, Integers
from trainwright.rehearsal.recorder import MOST_INPUTS

# Of a stream, at most so many batches, rows and bytes are read, and for so many seconds.
MOST_BATCHES, MOST_STREAM_ROWS, MOST_BYTES, MOST_SECONDS = 200, 4096, 100_000_000, 4.0
# A row of at most so many whole numbers is no text.
FEW = 4


@dataclass(kw_only=True)
class Rows:
    """Rows of a set: inputs and labels in the structure in which they were given."""

    x: Any
    y: Any
    weight: Any = None
    numbers: Integers | None = None
    """The rows' numbers in their set; None: a stream's."""
    total: int = 0

    @property
    def count(self) -> int:
        return count_of(self.y if self.y is not None else self.x)


def spread(count: int, most: int) -> Integers:
    """At most `most` of the numbers from 0 to count - 1, evenly spaced."""
    chosen = np.arange(count) if count <= most else np.linspace(0, count - 1, most)
    return chosen.astype(np.int64)


def array_of(value: Any) -> NDArray[Any]:
    """A tensor, a table or a list as an array."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    elif hasattr(value, "to_tensor"):  # ragged
        value = value.to_tensor()
    elif hasattr(value, "toarray"):
        value = value.toarray()
    array = np.asarray(value)
    if array.ndim == 1 and type(value).__name__ == "Series":  # as Keras reads one
        array = array[:, None]
    return array.astype(np.float32) if array.dtype == np.float64 else array


def mapped(change: Callable[[Any], Any], structure: Any) -> Any:
    """The structure with each leaf changed."""
    if structure is None:
        return None
    if isinstance(structure, Mapping):
        return {k: mapped(change, v) for k, v in structure.items()}
    if is_sequence(structure):
        return [mapped(change, v) for v in structure]
    return change(structure)


def is_sequence(structure: Any) -> bool:
    """Whether it is a list of tensors, not one of numbers or words."""
    return isinstance(structure, (list, tuple)) and not (
        structure and isinstance(structure[0], (int, float, str, bool, np.number))
    )


def leaves(structure: Any) -> list[Any]:
    """The tensors of a structure, in order."""
    found: list[Any] = []
    mapped(found.append, structure)
    return found


def count_of(structure: Any) -> int:
    """How many rows it has."""
    first = next(iter(leaves(structure)), None)
    if first is None:
        return 0
    shape = getattr(first, "shape", None)
    return int(shape[0]) if shape else len(first)


def is_arrays(x: Any) -> bool:
    """Whether rows lie in arrays, and not in a stream of batches."""
    parts = leaves(x)
    return bool(parts) and all(
        (hasattr(v, "shape") and hasattr(v, "__getitem__") and hasattr(v, "dtype"))
        or type(v).__name__ in ("Series", "DataFrame")
        or isinstance(v, (list, tuple))
        for v in parts
    )


def rows_at(x: Any, y: Any, weight: Any, at: Integers) -> Rows:
    """These rows, copied."""

    def pick(value: Any) -> Any:
        if hasattr(value, "iloc"):
            return array_of(value.iloc[at])
        if isinstance(value, np.ndarray):
            return array_of(value[at])
        return array_of(value)[at]

    return Rows(x=mapped(pick, x), y=mapped(pick, y), weight=mapped(pick, weight), numbers=at, total=count_of(x))


def rows_of_stream(stream: Any, most: int = MOST_STREAM_ROWS) -> Rows | None:
    """Rows of a few batches; called after the run, when nobody else needs the stream."""
    batches, count, size, began = [], 0, 0, time.perf_counter()
    for batch in _batches(stream):
        parts = tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)
        x, y, weight = (mapped(array_of, part) for part in (*parts, None, None)[:3])
        batches.append((x, y, weight))
        count += count_of(x)
        size += sum(leaf.nbytes for leaf in leaves(x))
        if count >= most or size > MOST_BYTES or time.perf_counter() - began > MOST_SECONDS:
            break
    if not batches:
        return None
    x, y, weight = (joined([batch[i] for batch in batches]) for i in range(3))
    return Rows(x=x, y=y, weight=weight, total=count)


def _batches(stream: Any) -> Iterator[Any]:
    if hasattr(stream, "__getitem__") and hasattr(stream, "__len__") and not hasattr(stream, "element_spec"):
        for i in spread(len(stream), MOST_BATCHES // 4).tolist():
            yield stream[i]
    elif not getattr(stream, "num_workers", 0):
        loader = sys.modules.get("torch.utils.data")
        if loader is not None and isinstance(stream, loader.DataLoader):
            stream = iter(stream)
        yield from itertools.islice(iter(stream), MOST_BATCHES)


def joined(parts: list[Any]) -> Any:
    """Batches of the same structure, one behind the other."""
    first = parts[0]
    if first is None:
        return None
    if isinstance(first, Mapping):
        return {k: joined([p[k] for p in parts]) for k in first}
    if isinstance(first, (list, tuple)):
        return [joined(list(column)) for column in zip(*parts)]
    parts = [np.atleast_1d(p) for p in parts]
    if len({p.shape[1:] for p in parts}) > 1:  # batches that are padded to their own longest row
        widest = [max(sizes) for sizes in zip(*(p.shape[1:] for p in parts))]
        parts = [np.pad(p, [(0, 0), *((0, w - s) for w, s in zip(widest, p.shape[1:]))]) for p in parts]
    return np.concatenate(parts)


def keys_of(x: Any) -> Integers:
    """One number for each row: equal rows have equal ones."""
    parts = [np.ascontiguousarray(a) for a in leaves(x)]
    count = len(parts[0])
    keys = np.empty(count, dtype=np.int64)
    for i in range(count):
        digest = hashlib.blake2b(digest_size=8)
        for part in parts:
            row = part[i : i + 1]
            digest.update(repr(row.tolist()).encode() if row.dtype.kind in "OUS" else row.tobytes())
        keys[i] = int.from_bytes(digest.digest(), "little", signed=True)
    return keys


def row_bytes(x: Any) -> int:
    """The size of one row."""
    return sum(math.prod(leaf.shape[1:]) * 4 for leaf in leaves(x) if hasattr(leaf, "shape"))


def inputs_of(x: Any, reads_tokens: bool) -> Floats | None:
    """The rows as plain numbers; token ids as counts. None: too wide, or no numbers.

    Args:
        reads_tokens: whether the model looks whole numbers up in a table.
    """
    columns = []
    for part in leaves(x):
        if part.dtype.kind not in "fiub":
            return None
        flat = part.reshape(len(part), -1)
        is_text = part.ndim == 2 and part.dtype.kind in "iu" and part.dtype.itemsize > 1 and flat.shape[1] > FEW
        if reads_tokens and is_text:
            bag = np.zeros((len(flat), TOKEN_GROUPS), dtype=np.float32)
            np.add.at(bag, (np.arange(len(flat))[:, None], flat.astype(np.int64) % TOKEN_GROUPS), 1.0)
            bag[:, 0] = 0.0  # padding
            columns.append(np.log1p(bag))
        else:
            columns.append(flat.astype(np.float32))
    if not columns or sum(c.shape[1] for c in columns) > MOST_INPUTS:
        return None
    return np.concatenate(columns, axis=1)
