"""The data that `fit` was given to train and validate on: rows, batches and labels, for any kind of data."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainwright.adapters.keras.input.kinds import source_of
from trainwright.adapters.keras.input.nested_values import leaves, map_leaves, stack, to_numpy
from trainwright.adapters.keras.input.one_batch import WEIGHT, Batch, X, Y, joined, rows_of_batch
from trainwright.adapters.keras.input.sources import (
    Arrays,
    ChangedRows,
    Drawn,
    Source,
    Stream,
    batch_size_of,
    unpack,
)
from trainwright.timing import now

# Number of batches to keep, so that every experiment can use the same ones.
POOLED = 8
# Up to this many rows selected from a stream are kept in memory, as one batch.
MOST_GATHERED = 512


@dataclass(frozen=True, kw_only=True)
class Plan:
    """fit's other arguments that affect how the data are used."""

    epochs: int = 1
    steps_per_epoch: int | None = None
    class_weight: Mapping[int, float] | None = None


def fit_data(given: Mapping[str, Any], *, floats: str = "float32", listed: bool = False) -> FitData:
    """The data that fit trains and validates on.

    Args:
        given: fit's arguments by name; arguments that were not given may be missing.
        floats: the type that fit converts other floating-point arrays to: Keras's floatx.
        listed: fit accepts lists of numbers as arrays, as tf_keras does.
    """
    x, y, weight = (_as_array(given.get(n), listed) for n in (X, Y, WEIGHT))
    epochs, steps = int(given.get("epochs") or 1), given.get("steps_per_epoch")
    size, shuffle = given.get("batch_size"), given.get("shuffle", True)
    source = source_of(x, y, weight, batch_size=size, shuffle=shuffle, steps=steps, floats=floats, listed=listed)
    plan = Plan(
        epochs=max(0, epochs - int(given.get("initial_epoch") or 0)),
        steps_per_epoch=steps,
        class_weight=given.get("class_weight"),
    )
    held, share = given.get("validation_data"), float(given.get("validation_split") or 0.0)
    held_size, held_steps = given.get("validation_batch_size") or size, given.get("validation_steps")
    if held is not None:
        parts = (_as_array(p, listed) for p in unpack(held))
        kept = source_of(*parts, batch_size=held_size, shuffle=False, steps=held_steps, floats=floats, listed=listed)
        return FitData("train", source, plan, validation=FitData("evaluation", kept, Plan(steps_per_epoch=held_steps)))
    if not share or not isinstance(source, Arrays):
        return FitData("train", source, plan)
    cut = math.floor((source.rows or 0) * (1.0 - share))
    kept = Arrays(
        x,
        y,
        weight,
        batch_size=held_size or batch_size_of((source.rows or 0) - cut, held_steps),
        shuffle=False,
        order=slice(cut, source.rows),
        floats=floats,
    )
    size = size or batch_size_of(cut, steps)
    trained = Arrays(x, y, weight, batch_size=size, shuffle=shuffle, order=slice(0, cut), floats=floats)
    return FitData(
        "train", trained, plan, validation=FitData("evaluation", kept, Plan(steps_per_epoch=held_steps)), split=share
    )


def _as_array(value: Any, listed: bool) -> Any:
    """A list of numbers as an array, as tf_keras converts it; Keras rejects lists, so there it stays a list."""
    inner = value
    while isinstance(inner, list) and inner:
        inner = inner[0]
    return np.asarray(value) if listed and isinstance(inner, (int, float, str)) and inner is not value else value


class FitData:
    """One of fit's sets: for training, or for validation.

    Args:
        validation: the validation set, if this is the training set.
        split: the fraction that `validation_split` took off the end, if it did.
    """

    def __init__(
        self, name: str, source: Source, plan: Plan, *, validation: FitData | None = None, split: float = 0.0
    ) -> None:
        self.name, self.source, self.plan = name, source, plan
        self.validation, self.split = validation, split
        self.seen_batches: int | None = None
        """The number of batches in one pass, once a pass was read to its end."""
        self.seen_last: Batch | None = None
        """The last batch of that pass."""
        self._pool: list[Batch] = []

    @property
    def kind(self) -> str:
        """arrays, tf.data, PyDataset, DataLoader, generator, rows, unknown."""
        return self.source.kind

    @property
    def length(self) -> int | None:
        """The number of rows in an epoch; None: unknown before they are read."""
        return self.source.rows

    @property
    def batch_size(self) -> int | None:
        """Rows in a batch; None if the data do not say."""
        return self.source.batch_size

    @property
    def batches_per_epoch(self) -> int | None:
        """Steps in an epoch: as given, otherwise the number of batches in the data; None: until they end."""
        return self.plan.steps_per_epoch or self.source.batches

    @property
    def shuffled(self) -> bool | None:
        """Whether training draws the rows in random order; None if that cannot be determined."""
        return self.source.shuffled

    def elements(self) -> Iterator[Batch]:
        """Batches of one epoch from the beginning, in NumPy: arrays in their own order, others in training order."""
        for element in self.source.elements():
            yield self._batch(element)

    def items(self, most: int) -> Iterator[Batch]:
        """The first rows, each as a batch without a row axis."""
        taken = (row for element in self.elements() for row in rows_of_batch(element))
        yield from itertools.islice(taken, most)

    def labels(self, most: int, *, seconds: float = 6.0) -> np.ndarray | None:
        """The targets of the first rows if they are one array; None if there are none, several, or rows of many sizes."""
        if isinstance(self.source, Arrays):
            found = leaves(self.source.y)
            rows = min(most, self.source.rows or 0)
            return self.source.whole(found[0])[:rows] if len(found) == 1 else None
        parts: list[np.ndarray] = []
        started, read = now(), 0
        for batch in self.elements():
            found = leaves(batch.y)
            if len(found) != 1:
                return None
            parts.append(found[0])
            read += len(found[0])
            if read >= most or now() - started > seconds:
                break
        alike = len({part.shape[1:] for part in parts}) == 1
        return np.concatenate(parts)[:most] if alike else None

    def weightless_rows(self, *, seconds: float = 6.0) -> tuple[int, bool]:
        """The number of rows with weight 0 in the loss (0 if any row has another weight), and whether all were seen.

        Args:
            seconds: time limit for reading streamed batches.
        """
        source = self.source
        if isinstance(source, Arrays):
            y, weight = (map_leaves(source.whole, part) for part in (source.y, source.weight))
            nothing = Batch(x=None, sample_weight=self._weight(y, weight)).weighs_nothing
            return source.rows or 0 if nothing else 0, nothing
        # Batches drawn from a generator are kept in memory, so no more are drawn for this.
        most = source.drawn if isinstance(source, Drawn) else None
        started, rows = now(), 0
        for batch in itertools.islice(self.elements(), most):
            if not batch.weighs_nothing:
                return 0, False
            rows += batch.rows
            if now() - started > seconds:
                return rows, False
        return rows, most is None or most == self.seen_batches

    def batches(self, count: int, seed: int) -> list[Batch]:
        """Some batches as fit makes them; one is among those with the most classes, several are consecutive.

        The seed determines which.
        """
        pool = self.pool(max(POOLED, count))
        if not pool:
            return []
        if count == 1:
            richest = sorted(pool, key=lambda b: -_classes(b))
            return [richest[seed % len(richest)]]
        start = seed % len(pool)
        return (pool[start:] + pool[:start])[:count]

    def pool(self, size: int = POOLED) -> list[Batch]:
        """The first batches of an epoch; for arrays that fit shuffles, in one shuffled order."""
        if len(self._pool) < size:
            self._pool = list(itertools.islice(self.in_training_order(), size))
        return self._pool

    def in_training_order(self) -> Iterator[Batch]:
        """Batches of one epoch; of arrays that fit shuffles, in one shuffled order."""
        if not (isinstance(self.source, Arrays) and self.source.shuffled):
            return self.elements()
        order = np.random.default_rng(1).permutation(self.source.rows or 0)
        size = self.source.batch_size
        starts = range(0, len(order), size)
        return (self._batch(self.source.at(order[s : s + size])) for s in starts)

    def last_batch(self) -> Batch | None:
        """The last batch of an epoch, often smaller than the others; None if finding it would need further reading."""
        source = self.source
        if isinstance(source, Arrays) and source.rows:
            return self._batch(
                source.at(slice((source.rows - 1) // source.batch_size * source.batch_size, source.rows))
            )
        if isinstance(source, Stream) and source.last is not None and (found := source.last()) is not None:
            return self._batch(found)
        return self.seen_last

    def _batch(self, element: Any) -> Batch:
        x, y, weight = (map_leaves(to_numpy, part) for part in unpack(element))
        return Batch(x=x, y=y, sample_weight=self._weight(y, weight))

    def _weight(self, y: Any, weight: Any) -> Any:
        """The given weights, or those that Keras computes from class_weight."""
        if weight is not None or not self.plan.class_weight or len(leaves(y)) != 1:
            return weight
        labels = leaves(y)[0]
        if labels.ndim > 1:
            labels = labels.argmax(axis=-1) if labels.shape[-1] != 1 else labels[..., 0]
        if labels.dtype.kind not in "iufb":
            return None
        wanted = self.plan.class_weight
        flat = [wanted.get(int(v), 1.0) for v in np.round(labels.reshape(-1).astype(np.float64))]
        return np.asarray(flat, dtype=np.float32).reshape(labels.shape)

    def for_training(self) -> dict[str, Any]:
        """Replacements for fit's arguments that can be read only once."""
        changed: dict[str, Any] = {}
        if isinstance(self.source, Drawn):
            changed["x"] = self.source.pass_on()
        if self.validation is not None and isinstance(self.validation.source, Drawn):
            changed["validation_data"] = self.validation.source.pass_on()
        return changed

    def put_back(self) -> None:
        """Undo all changes made by measuring."""
        self.source.put_back()
        if self.validation is not None:
            self.validation.put_back()

    # What repairs do to a set of rows, through tensors/keras/objects.py.

    def __len__(self) -> int:
        if self.length is None:
            raise TypeError(f"the number of rows of a {self.kind} is not known before they are read")
        return self.length

    def __bool__(self) -> bool:
        return True  # a set of unknown length is true as well

    def chosen(self, rows: Sequence[int]) -> FitData:
        """A set of these rows only; for data that are read in order, in that order."""
        if isinstance(self.source, Arrays):
            return self._with(self.source.chosen(rows))
        wanted = set(rows)
        some = self._with(ChangedRows(self.source, lambda row, n: row if n in wanted else None, rows=len(rows)))
        return some if len(rows) > MOST_GATHERED else some.gathered(len(rows), in_one_batch=True)

    def of_rows(self, rows: Sequence[Batch]) -> list[FitData]:
        """These rows, each a batch without a row axis, as batches in memory: those of one shape are one batch."""
        alike: dict[Any, list[Any]] = {}
        for row in rows:
            parts = (row.x, row.y, row.sample_weight)
            alike.setdefault(tuple(np.shape(leaf) for leaf in leaves(parts)), []).append(parts)
        stacked = [(stack(group), len(group)) for group in alike.values()]
        return [self._with(Arrays(*parts, batch_size=count, shuffle=False)) for parts, count in stacked]

    def of_several(self, sets: Sequence[FitData], rows: Sequence[tuple[int, int]]) -> FitData:
        """A set like this one, with rows of several sets of the same structure; each row is (set index, row)."""
        sources = [s.source for s in sets]
        starts, parts = [0], []
        for source in sources:
            if not isinstance(source, Arrays):
                raise TypeError("only rows of arrays can be mixed with those of another set")
            parts.append(
                (
                    map_leaves(source.whole, source.x),
                    map_leaves(source.whole, source.y),
                    map_leaves(source.whole, source.weight),
                )
            )
            starts.append(starts[-1] + (source.rows or 0))
        together = joined(parts, self.batch_size or 32)
        chosen = together.chosen([starts[which] + row for which, row in rows])
        chosen.shuffled = self.shuffled
        return self._with(chosen)

    def changed(self, change: Callable[[dict[str, Any], int], Mapping[str, Any]]) -> FitData:
        """The set with each row changed as it is read; the function gets the row by name, and its number."""

        def renew(row: Any, number: int) -> Any:
            item = Batch(x=row[0], y=row[1], sample_weight=row[2])
            new = item.renewed(change(item.view(), number))
            return new.x, new.y, new.sample_weight

        return self._with(ChangedRows(self.source, renew))

    def shuffled_rows(self, most: int = 50_000) -> FitData:
        """The same rows in a fixed random order; for data that are read in order, only the first rows."""
        if isinstance(self.source, Arrays):
            order = list(range(self.source.rows or 0))
            random.Random(0).shuffle(order)
            return self._with(self.source.chosen(order))
        arrays = self.gathered(most)
        return arrays.shuffled_rows() if isinstance(arrays.source, Arrays) else self

    def gathered(self, most: int, *, in_one_batch: bool = False) -> FitData:
        """The first rows as arrays in memory."""
        batches, read = [], 0
        for batch in self.elements():
            batches.append(batch)
            read += batch.rows
            if read >= most:
                break
        if not batches:
            return self
        return self._with(joined([(b.x, b.y, b.sample_weight) for b in batches], self.batch_size or batches[0].rows))

    def validated_on(self, held: FitData | None) -> FitData:
        """The same set with another validation set."""
        named = FitData("evaluation", held.source, held.plan) if held is not None else None
        return FitData(self.name, self.source, self.plan, validation=named, split=self.split)

    def _with(self, source: Source) -> FitData:
        return FitData(self.name, source, self.plan, validation=self.validation, split=self.split)


def _classes(batch: Batch) -> int:
    found = leaves(batch.y)
    labels = found[0] if len(found) == 1 else None
    if labels is None or labels.dtype.kind not in "iub" or labels.size != batch.rows:
        return 0
    return int(np.unique(labels).size)
