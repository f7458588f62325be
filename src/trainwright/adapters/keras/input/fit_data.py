"""The data that `fit` was given to train and validate on: rows, batches and labels, for any kind of data."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trainwright.adapters.keras.input.nested_values import count_rows, join_batches, leaves, map_leaves, stack, to_numpy
from trainwright.adapters.keras.input.one_batch import WEIGHT, FitBatch, X, Y
from trainwright.adapters.keras.input.sources import (
    DEFAULT_BATCH,
    Arrays,
    BatchSource,
    ReplayedGenerator,
    Source,
    batch_size_of,
    changed_rows,
    source_of,
    split_rows,
    unpack,
)

# Number of batches to keep, so that every experiment can use the same ones.
POOLED = 8
# Up to this many rows selected from a stream are kept in memory, as one batch.
MOST_GATHERED = 512
# Rows of other data that are gathered to be shuffled.
MOST_SHUFFLED = 50_000


@dataclass(frozen=True, kw_only=True)
class FitPlan:
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
    plan = FitPlan(
        epochs=max(0, epochs - int(given.get("initial_epoch") or 0)),
        steps_per_epoch=steps,
        class_weight=given.get("class_weight"),
    )
    held, share = given.get("validation_data"), float(given.get("validation_split") or 0.0)
    held_size, held_steps = given.get("validation_batch_size") or size, given.get("validation_steps")
    if held is not None:
        parts = (_as_array(p, listed) for p in unpack(held))
        kept = source_of(*parts, batch_size=held_size, shuffle=False, steps=held_steps, floats=floats, listed=listed)
        return FitData(
            "train", source, plan, validation=FitData("evaluation", kept, FitPlan(steps_per_epoch=held_steps))
        )
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
        "train", trained, plan, validation=FitData("evaluation", kept, FitPlan(steps_per_epoch=held_steps)), split=share
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
        is_changed: it is another set than fit was given.
    """

    def __init__(
        self,
        name: str,
        source: Source,
        plan: FitPlan,
        *,
        validation: FitData | None = None,
        split: float = 0.0,
        is_changed: bool = False,
    ) -> None:
        self.name, self.source, self.plan = name, source, plan
        self.validation, self.split, self.is_changed = validation, split, is_changed
        self.seen_batches: int | None = None
        """The number of batches in one pass, once a pass was read to its end."""
        self.read: list[FitBatch] = []
        """The batches of a stream that were read, from its beginning."""
        self._pool: list[FitBatch] = []

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
    def planned_batches(self) -> int | None:
        """Steps in all epochs that are to be made; None: unknown until the data end."""
        return self.batches_per_epoch * self.plan.epochs if self.batches_per_epoch else None

    @property
    def shuffled(self) -> bool | None:
        """Whether training draws the rows in random order; None if that cannot be determined."""
        return self.source.shuffled

    def elements(self) -> Iterator[FitBatch]:
        """Batches of one epoch from the beginning, in NumPy: arrays in their own order, others in training order."""
        for element in self.source.elements():
            yield self._batch(element)

    def weightless_rows(self) -> tuple[int, bool]:
        """The number of rows with weight 0 in the loss (0 if any row has another weight), and whether all were seen."""
        if isinstance(self.source, Arrays):
            x, y, weight = self.source.whole()
            batches, is_whole = [FitBatch(x=x, y=y, sample_weight=self._weight(y, weight))], True
        else:
            batches, is_whole = self.read, self.seen_batches is not None
        if not all(batch.weighs_nothing for batch in batches):
            return 0, False
        return sum(batch.rows for batch in batches), is_whole

    def batches(self, count: int, seed: int) -> list[FitBatch]:
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

    def pool(self, size: int = POOLED) -> list[FitBatch]:
        """The first batches of an epoch; for arrays that fit shuffles, in one shuffled order."""
        if len(self._pool) < size:
            self._pool = list(itertools.islice(self.in_training_order(), size))
        return self._pool

    def in_training_order(self) -> Iterator[FitBatch]:
        """Batches of one epoch; of arrays that fit shuffles, in one shuffled order."""
        if not (isinstance(self.source, Arrays) and self.source.shuffled):
            return self.elements()
        order = np.random.default_rng(1).permutation(self.source.rows or 0)
        size = self.source.batch_size
        starts = range(0, len(order), size)
        return (self._batch(self.source.at(order[s : s + size])) for s in starts)

    def last_batch(self) -> FitBatch | None:
        """The last batch of an epoch, often smaller than the others; None if finding it would need further reading."""
        source = self.source
        if isinstance(source, Arrays) and source.rows:
            return self._batch(
                source.at(slice((source.rows - 1) // source.batch_size * source.batch_size, source.rows))
            )
        if isinstance(source, BatchSource) and source.at is not None and source.batches:
            return self._batch(source.at(source.batches - 1))
        return self.read[-1] if self.seen_batches else None

    def _batch(self, element: Any) -> FitBatch:
        x, y, weight = (map_leaves(to_numpy, part) for part in unpack(element))
        return FitBatch(x=x, y=y, sample_weight=self._weight(y, weight))

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

    def sets(self) -> list[FitData]:
        """This set, and the one for validation if there is one."""
        return [self] if self.validation is None else [self, self.validation]

    def for_training(self) -> dict[str, Any]:
        """Replacements for fit's arguments: for data that can be read only once, and for sets that a repair has changed."""
        given: dict[str, Any] = {}
        is_split_anew = bool(self.split) and any(one.is_changed for one in self.sets())
        if self.is_changed or is_split_anew or isinstance(self.source, ReplayedGenerator):
            parts, steps = self._handed_over()
            given |= {**dict(zip((X, Y, WEIGHT), parts)), "validation_split": 0.0}
            if isinstance(self.source, BatchSource):
                given |= {"steps_per_epoch": steps, "class_weight": None, "batch_size": None}
        held = self.validation
        if held is not None and (held.is_changed or is_split_anew or isinstance(held.source, ReplayedGenerator)):
            parts, steps = held._handed_over()
            given["validation_data"] = parts if isinstance(held.source, Arrays) else parts[0]
            if isinstance(held.source, BatchSource):
                given |= {"validation_steps": steps, "validation_batch_size": None}
        return given

    def _handed_over(self) -> tuple[tuple[Any, Any, Any], int | None]:
        """Inputs, targets and weights in a form that fit takes; and of a stream, which then has no end, the steps of an epoch."""
        if isinstance(self.source, Arrays):
            return self.source.whole(), None
        if isinstance(self.source, ReplayedGenerator):
            return (self.source.pass_on(), None, None), None
        steps = self.batches_per_epoch or self.source.batches_repeated
        if steps is None and not self.source.endless:
            steps = sum(1 for _ in self.source.elements())
        batches = (batch for _ in itertools.count() for batch in self.elements())
        return (((b.x, b.y, b.sample_weight) for b in batches), None, None), steps

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
        some = self._with(changed_rows(self.source, lambda row, n: row if n in wanted else None, rows=len(rows)))
        return some if len(rows) > MOST_GATHERED else some.gathered(len(rows))

    def taken(self, rows: Sequence[int]) -> FitData:
        """A set of these rows, to take a step on; of a stream, of those that were read."""
        if isinstance(self.source, Arrays):
            return self.chosen(rows)
        starts = np.cumsum([0, *(batch.rows for batch in self.read)])
        parts = []
        for row in rows:
            number = int(np.searchsorted(starts, row, side="right")) - 1
            inside = slice(row - starts[number], row - starts[number] + 1)
            batch = self.read[number]
            parts.append(tuple(map_leaves(lambda a: a[inside], p) for p in (batch.x, batch.y, batch.sample_weight)))  # noqa: B023
        return self._with(Arrays(*join_batches(parts), batch_size=len(rows), shuffle=False))

    def of_several(self, sets: Sequence[FitData], rows: Sequence[tuple[int, int]]) -> FitData:
        """A set like this one, with rows of several sets of the same structure; each row is (set index, row)."""
        sources = [s.source for s in sets]
        starts, parts = [0], []
        for source in sources:
            if not isinstance(source, Arrays):
                raise TypeError("only rows of arrays can be mixed with those of another set")
            parts.append(source.whole())
            starts.append(starts[-1] + (source.rows or 0))
        together = Arrays(*join_batches(parts), batch_size=self.batch_size or DEFAULT_BATCH, shuffle=False)
        chosen = together.chosen([starts[which] + row for which, row in rows])
        chosen.shuffled = self.shuffled
        return self._with(chosen)

    def changed(self, change: Callable[[dict[str, Any], int], Mapping[str, Any]]) -> FitData:
        """The set with each row changed, of a stream as it is read; the function gets the row by name, and its number."""

        def renew(row: Any, number: int) -> Any:
            return _renewed(row, lambda view: change(view, number))

        if isinstance(self.source, Arrays):
            rows = [renew(row, number) for number, row in enumerate(split_rows(self.source.whole()))]
            return self._with(self.source.renewed(*stack(rows)))
        return self._with(changed_rows(self.source, renew))

    def batches_changed(self, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> FitData:
        """Both sets with each batch changed, of arrays all rows at once; the function gets the batch by name."""

        def renew(element: Any) -> Any:
            return _renewed([map_leaves(to_numpy, part) for part in unpack(element)], change)

        source, held = self.source, self.validation
        if isinstance(source, Arrays):
            renewed: Source = source.renewed(*renew(source.whole()))
        elif isinstance(source, ReplayedGenerator):
            renewed = source.changed(renew)
        else:
            renewed = replace(source, kind="rows", elements=lambda: map(renew, source.elements()), at=None)
        changed = self._with(renewed)
        changed.validation = held.batches_changed(change) if held is not None else None
        return changed

    def whole_batches(self) -> FitData:
        """The set without its last batch, if that is smaller than the others."""
        source, size = self.source, self.batch_size
        if size is None or isinstance(source, ReplayedGenerator):
            return self
        if isinstance(source, Arrays):
            return self._with(source.chosen(range(len(self) // size * size)))

        def begin() -> Iterator[Any]:
            return (one for one in source.elements() if count_rows(one) == size)

        rows = None if source.rows is None else source.rows // size * size
        batches = None if rows is None else rows // size
        return self._with(replace(source, kind="rows", elements=begin, rows=rows, batches=batches, at=None))

    def shuffled_rows(self) -> FitData:
        """The same rows in a fixed random order; for data that are read in order, only the first rows."""
        if isinstance(self.source, Arrays):
            order = list(range(self.source.rows or 0))
            random.Random(0).shuffle(order)
            return self._with(self.source.chosen(order))
        arrays = self.gathered(MOST_SHUFFLED)
        return arrays.shuffled_rows() if isinstance(arrays.source, Arrays) else self

    def gathered(self, most: int) -> FitData:
        """The first rows as arrays in memory."""
        batches, read = list[FitBatch](), 0
        for batch in self.elements():
            batches.append(batch)
            read += batch.rows
            if read >= most:
                break
        if not batches:
            return self
        size = self.batch_size or batches[0].rows
        parts = join_batches([(b.x, b.y, b.sample_weight) for b in batches])
        return self._with(Arrays(*parts, batch_size=size, shuffle=False))

    def validated_on(self, held: FitData | None) -> FitData:
        """The same set with another validation set."""
        named = FitData("evaluation", held.source, held.plan, is_changed=True) if held is not None else None
        return FitData(
            self.name, self.source, self.plan, validation=named, split=self.split, is_changed=self.is_changed
        )

    def _with(self, source: Source) -> FitData:
        return FitData(self.name, source, self.plan, validation=self.validation, split=self.split, is_changed=True)


def _renewed(element: Sequence[Any], change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> tuple[Any, Any, Any]:
    """Inputs, targets and weights, of a batch or a row, as a change of them by name leaves them."""
    item = FitBatch(x=element[0], y=element[1], sample_weight=element[2])
    new = item.renewed(change(item.view()))
    return new.x, new.y, new.sample_weight


def _classes(batch: FitBatch) -> int:
    found = leaves(batch.y)
    labels = found[0] if len(found) == 1 else None
    if labels is None or labels.dtype.kind not in "iub" or labels.size != batch.rows:
        return 0
    return int(np.unique(labels).size)
