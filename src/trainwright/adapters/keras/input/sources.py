"""Sources of fit's data: the properties of each kind, and its batches in training order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import GeneratorType
from typing import Any

import numpy as np

from trainwright.adapters.keras.input.nested_values import count_rows, is_array, leaves, map_leaves, stack, take
from trainwright.seams.failures.blame import of_pipeline
from trainwright.tensors.items import length

# fit's batch size for arrays if none was given.
DEFAULT_BATCH = 32
# Of a generator, batches of so many bytes are kept while it trains.
MOST_KEPT = 500_000_000
# tf.data's cardinality of an infinite dataset (tf.data.INFINITE_CARDINALITY).
_INFINITE = -1


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

    def at(self, index: slice | np.ndarray) -> tuple[Any, Any, Any]:
        """A batch of these rows, made as fit makes it: inputs, targets and weights."""
        chosen = _within(self.order, index)
        x, y, weight = (map_leaves(lambda a: self._taken(a, chosen), p) for p in (self.x, self.y, self.weight))
        return x, y, weight

    def _taken(self, array: Any, index: Any) -> np.ndarray:
        if self._unequal:
            raise of_pipeline(ValueError(self._unequal))
        rows: np.ndarray = take(array, index)
        if type(array).__name__ == "Series":  # fit adds a second axis to a series
            rows = rows[:, None]
        return rows.astype(self.floats) if rows.dtype.kind == "f" and rows.dtype.name != self.floats else rows

    def numbers(self, index: np.ndarray) -> np.ndarray:
        """The numbers in the arrays of rows at an index among the selected rows."""
        return np.asarray(_within(self.order, index))

    def whole(self) -> Any:
        """All selected rows, as one batch."""
        return self.at(slice(0, self.rows))

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

    def renewed(self, x: Any, y: Any, weight: Any) -> Arrays:
        """Other arrays, which fit slices as it would these."""
        return Arrays(x, y, weight, batch_size=self.batch_size, shuffle=self.shuffled, floats=self.floats)


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


@dataclass(frozen=True, kw_only=True)
class BatchSource:
    """A source that forms its own batches: a tf.data.Dataset, a PyDataset, a torch DataLoader."""

    given: Any
    kind: str
    """tf.data, PyDataset, DataLoader, grain, rows (changed by a repair), unknown."""
    elements: Callable[[], Iterator[Any]]
    """Starts a pass over the batches, as the data yield them: x, (x,), (x, y) or (x, y, sample_weight)."""
    rows: int | None = None
    """Rows in one epoch; None: unknown before they are read."""
    batches: int | None = None
    """Batches in one epoch; None: unknown, or endless."""
    batch_size: int | None = None
    """Rows in a batch; None if the data do not say."""
    shuffled: bool | None = None
    """Whether rows are drawn in random order; None if that cannot be determined."""
    endless: bool = False
    """Whether a pass never ends, according to the data."""
    batches_repeated: int | None = None
    """For an endless source, the batches in one pass over the data it repeats; None: unknown."""
    at: Callable[[int], Any] | None = None
    """Gives the batch of a number; None: batches come one after the other."""


class ReplayedGenerator:
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

    def changed(self, change: Callable[[Any], Any]) -> ReplayedGenerator:
        """A generator of the same batches, each changed."""
        return ReplayedGenerator(change(batch) for batch in self.pass_on())


Source = Arrays | BatchSource | ReplayedGenerator


def changed_rows(source: Source, change: Callable[[Any, int], Any], *, rows: int | None = None) -> BatchSource:
    """Rows of another source in its batches, each changed as it is read.

    Args:
        change: takes a row's (x, y, weight) and its number, and returns the new row; None drops it.
    """

    def begin() -> Iterator[Any]:
        counter = itertools.count()
        for element in source.elements():
            changed = [change(row, next(counter)) for row in split_rows(element)]
            if kept := [row for row in changed if row is not None]:
                yield stack(kept)

    rows = rows if rows is not None else source.rows
    return BatchSource(
        given=source,
        kind="rows",
        elements=begin,
        rows=rows,
        batches=None if rows is None else math.ceil(rows / (source.batch_size or DEFAULT_BATCH)),
        batch_size=source.batch_size,
        shuffled=source.shuffled,
        endless=source.endless,
        batches_repeated=source.batches_repeated,
    )


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


def source_of(
    x: Any, y: Any, weight: Any, *, batch_size: int | None, shuffle: Any, steps: int | None, floats: str, listed: bool
) -> Source:
    """The source that reads the data fit was given.

    Args:
        listed: fit treats any iterator as a generator, as tf_keras does.
    """
    if are_arrays(x, y, weight):
        size = batch_size or batch_size_of(count_rows([x, y]) or 0, steps)
        return Arrays(x, y, weight, batch_size=size, shuffle=shuffle, floats=floats)
    kinds = {parent.__name__: parent.__module__ for parent in type(x).__mro__}
    if "tensorflow.python" in kinds.get("DatasetV2", ""):
        return _of_tf_data(x)
    if "keras" in kinds.get("PyDataset", "") or "keras" in kinds.get("Sequence", ""):
        return _of_batches_by_number(x, shuffle)
    if kinds.get("DataLoader", "").startswith("torch.utils.data"):
        return _of_loader(x)
    if isinstance(x, GeneratorType) or (listed and hasattr(x, "__next__")):
        return ReplayedGenerator(x)
    if type(x).__module__.startswith("grain."):
        return BatchSource(given=x, kind="grain", elements=lambda: iter(x))
    return BatchSource(given=x, kind="unknown", elements=lambda: _refuse(x))


def _refuse(given: Any) -> Iterator[Any]:
    """Raise what fit raises for data of other types."""
    raise of_pipeline(ValueError(f"Unrecognized data type: x={given!r} (of type {type(given)})"[:300]))


def _of_batches_by_number(data: Any, shuffle: Any) -> BatchSource:
    """A PyDataset (a Sequence in tf_keras): batches by index; fit draws them in random order if it shuffles."""
    try:
        count = data.num_batches if hasattr(type(data), "num_batches") else len(data)
        endless = count is None  # how a PyDataset signals that it has no end
    except (NotImplementedError, TypeError):
        count, endless = None, False
    # Whole batches are shuffled: their rows stay together unless the user's code mixes them.
    mixes = any(_is_own(data, name) for name in ("on_epoch_end", "on_epoch_begin"))
    return BatchSource(
        given=data,
        kind="PyDataset",
        elements=lambda: (data[i] for i in (itertools.count() if count is None else range(count))),
        batches=count,
        shuffled=None if mixes and shuffle else False,
        endless=endless,
        at=data.__getitem__,
    )


def _is_own(data: Any, name: str) -> bool:
    """Whether the user's class overrides a method."""
    method = getattr(type(data), name, None)
    return method is not None and "keras" not in str(method.__module__).split(".")[0]


def _of_loader(loader: Any) -> BatchSource:
    """A torch DataLoader."""
    rows = length(loader.dataset)
    sampler = getattr(loader.batch_sampler, "sampler", None) or loader.sampler
    kind = type(sampler).__name__
    batches = len(loader) if rows is not None else None
    return BatchSource(
        given=loader,
        kind="DataLoader",
        elements=lambda: iter(loader),
        rows=batches * loader.batch_size if batches is not None and loader.drop_last else rows,
        batches=batches,
        batch_size=loader.batch_size,
        shuffled=None if sampler is None else "Sequential" not in kind and "Infinite" not in kind,
    )


def _of_tf_data(dataset: Any) -> BatchSource:
    """A tf.data.Dataset."""
    batches = _cardinality(dataset)
    spec = next(iter(leaves(dataset.element_spec)), None)
    return BatchSource(
        given=dataset,
        kind="tf.data",
        elements=lambda: iter(dataset),
        batches=batches if batches >= 0 else None,
        batch_size=spec.shape[0] if spec is not None and spec.shape.rank else None,
        endless=batches == _INFINITE,
        batches_repeated=_batches_repeated(dataset) if batches == _INFINITE else None,
    )


def _cardinality(dataset: Any) -> int:
    """The dataset's number of elements; negative if it is infinite or unknown."""
    cardinality = dataset.cardinality
    return int(cardinality() if callable(cardinality) else cardinality)


def _batches_repeated(dataset: Any) -> int | None:
    """The batches in one pass over the data that a dataset repeats, found by following its inputs."""
    sizes: list[int] = []
    while True:
        kind, before = type(dataset).__name__, list(getattr(dataset, "_inputs", list)())
        if len(before) != 1:
            return None
        if "Repeat" in kind:
            count = _cardinality(before[0])
            for rows in reversed(sizes):
                count = math.ceil(count / rows)
            return count if count > 0 else None
        if "Batch" in kind:
            if (size := getattr(dataset, "_batch_size", None)) is None:
                return None
            sizes.append(int(size))
        dataset = before[0]
