"""Rows given to a Keras model, taken from arrays and from streams of batches."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.adapters.keras.input.nested_values import count_rows, join_batches, leaves, map_leaves, to_numpy
from trainwright.adapters.keras.input.sources import Arrays, ReplayedGenerator, Source, unpack
from trainwright.rehearsal.record import Integers
from trainwright.rehearsal.recorder import spread

# Of a stream, at most so many batches, rows and bytes are read, and for so many seconds.
MOST_BATCHES, MOST_STREAM_ROWS, MOST_BYTES, MOST_SECONDS = 200, 4096, 100_000_000, 4.0
# So many rows of arrays are taken, however large they are.
FEWEST_ROWS = 16


@dataclass(kw_only=True)
class SetRows:
    """Rows of a set: inputs and labels in the structure in which they were given."""

    x: Any
    y: Any
    weight: Any = None
    numbers: Integers | None = None
    """The rows' numbers in their set; None: a stream's."""
    total: int = 0

    @property
    def count(self) -> int:
        return count_rows([self.y if self.y is not None else self.x]) or 0


def array_of(value: Any) -> NDArray[Any]:
    """A tensor, a table or a list as an array."""
    array = np.asarray(to_numpy(value))
    return array.astype(np.float32) if array.dtype == np.float64 else array


def rows_of_arrays(source: Arrays, most: int) -> SetRows:
    """At most so many rows, evenly spaced, copied while they are what they were."""
    chosen = spread(source.rows or 0, max(FEWEST_ROWS, min(most, MOST_BYTES // max(1, row_bytes(source.x)))))
    x, y, weight = source.at(chosen)
    return SetRows(x=x, y=y, weight=weight, numbers=source.numbers(chosen), total=source.rows or 0)


def rows_of_stream(source: Source, most: int = MOST_STREAM_ROWS) -> SetRows | None:
    """Rows of a few batches; called after the run, when nobody else needs the stream."""
    batches, count, size, began = [], 0, 0, time.perf_counter()
    for batch in _batches(source):
        x, y, weight = (map_leaves(array_of, part) for part in unpack(batch))
        batches.append((x, y, weight))
        count += count_rows([x]) or 0
        size += sum(leaf.nbytes for leaf in leaves(x))
        if count >= most or size > MOST_BYTES or time.perf_counter() - began > MOST_SECONDS:
            break
    if not batches:
        return None
    x, y, weight = join_batches(batches)
    return SetRows(x=x, y=y, weight=weight, total=count)


def _batches(source: Source) -> Iterator[Any]:
    if isinstance(source, ReplayedGenerator):  # what training has not drawn
        yield from itertools.islice(source.generator, MOST_BATCHES)
    elif isinstance(source, Arrays) or source.kind == "unknown" or getattr(source.given, "num_workers", False):
        return
    elif source.at is not None and source.batches is not None:
        yield from map(source.at, spread(source.batches, MOST_BATCHES // 4).tolist())
    else:
        yield from itertools.islice(source.elements(), MOST_BATCHES)


def row_bytes(x: Any) -> int:
    """The size of one row."""
    return sum(math.prod(leaf.shape[1:]) * 4 for leaf in leaves(x) if hasattr(leaf, "shape"))
