"""Sources of fit's data: the properties of each kind, and its batches in training order.

Looking at a source never changes what training will draw from it; `put_back` undoes unavoidable changes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from trainwright.adapters.keras.input.nested_values import count_rows, is_array, leaves, map_leaves, stack, take
from trainwright.seams.failures.blame import of_pipeline
from trainwright.seams.state.snapshot import AttributeState, RandomState, loose_generators

# fit's batch size for arrays if none was given.
DEFAULT_BATCH = 32
# Of a generator, batches of so many bytes are kept while it trains.
MOST_KEPT = 500_000_000


class Source(Protocol):
    """One epoch of data, for looking at without training."""

    @property
    def kind(self) -> str:
        """arrays, tf.data, PyDataset, DataLoader, generator, rows (changed by a repair), unknown."""

    @property
    def rows(self) -> int | None:
        """Rows in one epoch; None: unknown before they are read."""

    @property
    def batches(self) -> int | None:
        """Batches in one epoch; None: unknown, or endless."""

    @property
    def endless(self) -> bool:
        """Whether a pass never ends, according to the data."""

    @property
    def batches_repeated(self) -> int | None:
        """For an endless source, the batches in one pass over the data it repeats; None: unknown."""

    @property
    def batch_size(self) -> int | None:
        """Rows in a batch; None if the data do not say."""

    @property
    def shuffled(self) -> bool | None:
        """Whether rows are drawn in random order; None if that cannot be determined."""

    def elements(self) -> Iterator[Any]:
        """Batches from the beginning, as the data yield them: x, (x,), (x, y) or (x, y, sample_weight)."""

    def put_back(self) -> None:
        """Undo all changes made by looking."""


class Arrays:
    """Arrays, tensors and frames, or structures of them, which fit itself slices into batches.

    Args:
        order: the selected rows, if not all or reordered (part of a split, or rows selected by a repair).
    """

    kind = "arrays"
    endless, batches_repeated = False, None

    def __init__(
        self,
        x: Any,
        y: Any,
        weight: Any,
        *,
        batch_size: int,
        shuffle: Any,
        order: slice | np.ndarray | None = None,
        floats: str = "float32",
    ) -> None:
        self.x, self.y, self.weight = x, y, weight
        self.order, self.floats = order, floats
        self.rows: int | None = _length(order, count_rows([x, y]) or 0)
        self._unequal = _unequal_sizes(x=x, y=y)
        self.batch_size: int = batch_size
        self.batches: int | None = math.ceil(self.rows / batch_size)
        # shuffle="batch" mixes rows within a batch, not between batches.
        self.shuffled: bool | None = bool(shuffle) and shuffle != "batch"

    def elements(self) -> Iterator[Any]:
        for start in range(0, self.rows or 0, self.batch_size):
            yield self.at(slice(start, min(start + self.batch_size, self.rows or 0)))

    def at(self, index: slice | np.ndarray) -> Any:
        """A batch of these rows, made as fit makes it."""
        chosen = _within(self.order, index)
        return tuple(map_leaves(lambda a: self._taken(a, chosen), p) for p in (self.x, self.y, self.weight))

    def _taken(self, array: Any, index: Any) -> np.ndarray:
        if self._unequal:
            raise of_pipeline(ValueError(self._unequal))
        rows: np.ndarray = take(array, index)
        if type(array).__name__ == "Series":  # fit adds a second axis to a series
            rows = rows[:, None]
        return rows.astype(self.floats) if rows.dtype.kind == "f" and rows.dtype.name != self.floats else rows

    def whole(self, array: Any) -> np.ndarray:
        """One of the arrays with the selected rows, as fit converts it."""
        return self._taken(array, slice(None) if self.order is None else self.order)

    def chosen(self, rows: Sequence[int]) -> Arrays:
        """The same arrays with these rows only."""
        picked = _within(self.order, np.asarray(rows, dtype=np.int64))
        return Arrays(
            self.x,
            self.y,
            self.weight,
            batch_size=self.batch_size,
            shuffle=self.shuffled,
            order=picked,
            floats=self.floats,
        )

    def put_back(self) -> None:
        """Does nothing: nothing was changed."""


def _unequal_sizes(**parts: Any) -> str:
    """Keras's message about arrays of unequal length; empty if their lengths are equal."""
    sizes = {name: [count_rows([array]) for array in leaves(part)] for name, part in parts.items()}
    if len({size for found in sizes.values() for size in found}) <= 1:
        return ""
    shown = ", ".join(f"'{name}' sizes: {', '.join(map(str, found))}" for name, found in sizes.items())
    return f"Data cardinality is ambiguous. Make sure all arrays contain the same number of samples. {shown}"


def _length(order: slice | np.ndarray | None, total: int) -> int:
    return len(range(total)[order]) if isinstance(order, slice) else total if order is None else len(order)


def _within(order: slice | np.ndarray | None, index: slice | np.ndarray) -> slice | np.ndarray:
    """The array rows at an index among the selected rows."""
    if order is None:
        return index
    if isinstance(order, slice):
        first = order.start or 0
        if isinstance(index, slice):
            return slice(first + index.start, first + index.stop)
        return index + first
    return order[index]


class Stream:
    """A source that forms its own batches: a tf.data.Dataset, a PyDataset, a torch DataLoader.

    Args:
        begin: starts a new pass over the batches; training sees no effect of it except on `owners`.
        owners: objects whose attributes and random generators a pass may change.
        last: returns the last batch of an epoch without reading the others, if that is possible.
    """

    def __init__(
        self,
        kind: str,
        begin: Callable[[], Iterator[Any]],
        *,
        rows: int | None = None,
        batches: int | None = None,
        batch_size: int | None = None,
        shuffled: bool | None = None,
        owners: Sequence[Any] = (),
        last: Callable[[], Any] | None = None,
        endless: bool = False,
        batches_repeated: int | None = None,
    ) -> None:
        self.kind, self.last = kind, last
        self.endless, self.batches_repeated = endless, batches_repeated
        self.rows, self.batches, self.batch_size, self.shuffled = rows, batches, batch_size, shuffled
        self.owners = tuple(owners)
        self._begin = begin
        self._attributes = AttributeState(owners)
        self._random = RandomState(loose_generators(owners))

    def elements(self) -> Iterator[Any]:
        return self._begin()

    def put_back(self) -> None:
        self._attributes.put_back()
        self._random.put_back()


class Drawn:
    """A generator: batches drawn from it are kept, and yielded again in every pass."""

    kind = "generator"
    endless, batches_repeated = False, None  # unknown until it ends
    rows = None
    batches = None
    batch_size = None
    shuffled = None

    def __init__(self, generator: Iterator[Any]) -> None:
        self.generator = generator
        self._drawn: list[Any] = []
        self._kept_bytes = 0

    @property
    def drawn(self) -> int:
        """The number of batches drawn so far."""
        return len(self._drawn)

    def elements(self) -> Iterator[Any]:
        for position in itertools.count():
            if position == len(self._drawn):
                try:
                    self._drawn.append(next(self.generator))
                except StopIteration:
                    return
            yield self._drawn[position]

    def pass_on(self) -> Iterator[Any]:
        """A generator for training, of which the first batches are kept."""
        yield from self._drawn
        for batch in self.generator:
            if self._kept_bytes < MOST_KEPT:
                self._kept_bytes += sum(int(getattr(leaf, "nbytes", 0)) for leaf in leaves(batch))
                self._drawn.append(batch)
            yield batch

    def put_back(self) -> None:
        """Does nothing: drawn batches cannot be returned; training must use `pass_on`."""


class ChangedRows:
    """Rows of another source in its batches, each changed as it is read.

    Args:
        change: takes a row's (x, y, weight) and its number, and returns the new row; None drops it.
    """

    kind = "rows"

    def __init__(self, source: Source, change: Callable[[Any, int], Any], *, rows: int | None = None) -> None:
        self.source, self.change = source, change
        self.endless, self.batches_repeated = source.endless, source.batches_repeated
        self.rows = rows if rows is not None else source.rows
        self.batch_size = source.batch_size
        self.batches = None if self.rows is None else math.ceil(self.rows / (self.batch_size or DEFAULT_BATCH))
        self.shuffled = source.shuffled

    def elements(self) -> Iterator[Any]:
        counter = itertools.count()
        for element in self.source.elements():
            changed = [self.change(row, next(counter)) for row in split_rows(element)]
            if kept := [row for row in changed if row is not None]:
                yield stack(kept)

    def put_back(self) -> None:
        self.source.put_back()


def batch_size_of(rows: int, steps: int | None) -> int:
    """fit's batch size if none was given: derived from the number of steps, otherwise 32."""
    return max(1, math.ceil(rows / steps)) if steps else DEFAULT_BATCH


def split_rows(element: Any) -> Iterator[Any]:
    """The rows of one batch, each as (x, y, weight)."""
    x, y, weight = unpack(element)
    for row in range(count_rows([x, y]) or 0):
        yield tuple(_row(part, row) for part in (x, y, weight))


def _row(part: Any, row: int) -> Any:
    return map_leaves(lambda a: take(a, slice(row, row + 1))[0], part)


def unpack(element: Any) -> tuple[Any, Any, Any]:
    """A batch as (x, y, sample_weight), interpreted as Keras does."""
    if isinstance(element, list):
        element = tuple(element)
    if not isinstance(element, tuple) or hasattr(element, "_fields"):
        return element, None, None
    if not 1 <= len(element) <= 3:
        return element, None, None
    padded = (*element, None, None)
    return padded[0], padded[1], padded[2]


def are_arrays(*values: Any) -> bool:
    """Whether fit itself would slice these into batches."""
    flat = [leaf for value in values for leaf in leaves(value)]
    return bool(flat) and all(map(is_array, flat))


class Refused:
    """Data of a type that fit rejects."""

    kind = "unknown"
    endless, batches_repeated = False, None
    rows = batches = batch_size = shuffled = None

    def __init__(self, given: Any) -> None:
        self.given = given

    def elements(self) -> Iterator[Any]:
        said = f"Unrecognized data type: x={self.given!r} (of type {type(self.given)})"
        raise of_pipeline(ValueError(said[:300]))

    def put_back(self) -> None:
        """Does nothing: nothing was changed."""
