"""Reads one of fit's sets for the dataset stage: whole columns of arrays, the first rows of streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trainwright.adapters.data.reading import FEWEST_ITEMS, SAMPLE_BYTES
from trainwright.adapters.keras.input.fit_data import FitData
from trainwright.adapters.keras.input.nested_values import map_leaves, named
from trainwright.adapters.keras.input.one_batch import WEIGHT, Batch, X
from trainwright.adapters.keras.input.sources import Arrays, Drawn
from trainwright.core.finding import Failure
from trainwright.probes.splits.census import digest
from trainwright.probes.splits.labels import is_one_hot
from trainwright.seams.failures.blame import failure_of, tolerated
from trainwright.stages.dataset import CENSUS_LABELS, SAMPLED_ITEMS, Split
from trainwright.timing import now

# Targets such as images are counted over this many values.
MOST_TARGET_VALUES = 4_000_000
# Batches drawn from a generator are kept until training has used them.
MOST_DRAWN_BYTES = 256 * 2**20


def read_set(data: FitData, *, seconds: float = 6.0) -> Split:
    """Read a set: all rows of arrays, the first rows of other data.

    Args:
        seconds: time limit for reading batches of other data.
    """
    if isinstance(data.source, Arrays):
        return _read_arrays(data, data.source)
    gathering = Gathering()
    failure, ended, started, batch = None, False, now(), None
    try:
        for batch in data.elements():
            gathering.add(batch)
            if gathering.rows >= CENSUS_LABELS or now() - started > seconds:
                break
            if isinstance(data.source, Drawn) and gathering.bytes > MOST_DRAWN_BYTES:
                break
        else:
            ended = True
            data.seen_batches, data.seen_last = gathering.batches, batch
    except Exception as error:  # the user's own data raised, which is a finding
        failure = failure_of(error)
    return gathering.split(data, ended, failure)


def target_names(data: FitData) -> tuple[str, ...]:
    """The names of the targets; if the data have none, the usual names of labels among the inputs."""
    if isinstance(data.source, Arrays):
        batch = Batch(x=data.source.x, y=data.source.y)
        own = [n for n in batch.view() if n not in dict(named(batch.x, X))]
    else:
        first = []
        with tolerated():  # data that form no batch are reported by the batch stage
            first = data.pool(1)
        own = list(target_view(first[0])) if first else []
    return tuple(own) or ("labels", "label", "label_ids", "targets", "target")


def target_view(batch: Batch) -> dict[str, Any]:
    """The targets of a batch under the names in its view."""
    plain = Batch(x=batch.x, y=batch.y)
    return {n: a for n, a in plain.view().items() if n not in dict(named(batch.x, X))}


def _read_arrays(data: FitData, source: Arrays) -> Split:
    rows = source.rows or 0
    try:
        whole = Batch(
            x=map_leaves(source.whole, source.x),
            y=map_leaves(source.whole, source.y),
            sample_weight=map_leaves(source.whole, source.weight),
        )
        columns = {n: plain_column(c) for n, c in whole.view().items()}
    except Exception as error:  # a user's array type that cannot be sliced
        return Split(name=data.name, rows=rows, failure=failure_of(error), failed_row=0)
    for name in target_view(whole):
        columns[name] = _part_of_targets(columns[name])
    return Split(name=data.name, rows=rows, columns=columns, read=rows, **_sample(columns, rows))


def _sample(columns: Mapping[str, Any], rows: int) -> dict[str, Any]:
    """Evenly spaced rows, as many as may be kept."""
    size = sum(c[:1].nbytes for c in columns.values() if isinstance(c, np.ndarray)) or 1
    count = min(rows, SAMPLED_ITEMS, max(FEWEST_ITEMS, SAMPLE_BYTES // size))
    shortest = min((len(c) for c in columns.values()), default=0)
    chosen = sorted({int(i) for i in np.linspace(0, shortest - 1, count)}) if shortest else []
    return {"items": [{n: c[i] for n, c in columns.items()} for i in chosen], "indices": chosen}


def plain_column(values: Any) -> Any:
    """A column for counting: one value per row without a second axis of 1, texts as text."""
    if not isinstance(values, np.ndarray):
        return values
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.dtype.kind == "S":
        return np.char.decode(values, "utf-8", "replace").tolist()
    return values.tolist() if values.dtype.kind in "UO" else values


def _part_of_targets(values: Any) -> Any:
    if not isinstance(values, np.ndarray) or values.ndim < 2 or values.size <= MOST_TARGET_VALUES or is_one_hot(values):
        return values
    return values[: max(1, MOST_TARGET_VALUES // max(1, values[0].size))]


class Gathering:
    """Collects passing batches: small columns whole, samples of large ones, hashes, and non-finite positions."""

    def __init__(self) -> None:
        self.rows = self.batches = self.bytes = 0
        self.parts: dict[str, list[Any]] = {}
        self.digests: dict[str, list[int]] = {}
        self.non_finite: dict[str, dict[int, int]] = {}
        self.items: list[dict[str, Any]] = []
        self._most_items = 0
        self._targets: set[str] = set()

    def add(self, batch: Batch) -> None:
        """Record a batch."""
        view = {n: np.asarray(a)[None] for n, a in batch.view().items()} if batch.is_row else batch.view()
        if not self.parts and not self.digests:
            self._begin(batch, view)
        for name, values in view.items():
            if name in self.parts:
                self.parts[name].append(values)
            elif name in self.digests:
                self._pass_on(name, values)
        for row in range(min(batch.rows, self._most_items - len(self.items))):
            self.items.append({n: plain_column(a)[row] for n, a in view.items() if len(a) > row})
        self.rows += batch.rows
        self.batches += 1
        self.bytes += sum(a.nbytes for a in view.values())

    def _begin(self, batch: Batch, view: Mapping[str, Any]) -> None:
        sizes = {n: a.nbytes / max(1, batch.rows) for n, a in view.items()}
        small = {n for n, size in sizes.items() if size * CENSUS_LABELS <= SAMPLE_BYTES}
        self._targets = set(target_view(batch))
        self.parts = {n: [] for n in view if n in small}
        self.digests = {n: [] for n in view if n not in small}
        self.non_finite = {n: {} for n in self.digests}
        self._most_items = int(min(SAMPLED_ITEMS, max(FEWEST_ITEMS, SAMPLE_BYTES // max(1.0, sum(sizes.values())))))

    def _pass_on(self, name: str, values: Any) -> None:
        for row, value in enumerate(values):
            self.digests[name].append(digest(value))
            if values.dtype.kind == "f" and (bad := int((~np.isfinite(value)).sum())):
                self.non_finite[name][self.rows + row] = bad

    def split(self, data: FitData, ended: bool, failure: Failure | None) -> Split:
        """The rows that were read, from a set that was or was not read to its end."""
        columns = {n: _part_of_targets(_joined(p)) if n in self._targets else _joined(p) for n, p in self.parts.items()}
        return Split(
            name=data.name,
            rows=self.rows if ended else data.length,
            kind="iterable",
            items=self.items,
            indices=range(len(self.items)),
            columns=columns,
            read=self.rows,
            digests=self.digests,
            non_finite=self.non_finite,
            failure=failure,
            failed_row=self.rows if failure else None,
        )


def _joined(parts: Sequence[Any]) -> Any:
    """One column from the batches' parts; single rows if the batches differ in shape."""
    if not parts:
        return []
    if all(p.ndim and p.shape[1:] == parts[0].shape[1:] for p in parts):
        return plain_column(np.concatenate(parts))
    return [row for p in parts for row in (p if p.ndim else [p])]


def without_labels(view: Mapping[str, Any], targets: Sequence[str]) -> tuple[str, ...]:
    """The names in a view that are inputs: neither targets nor the weights of rows."""
    return tuple(n for n in view if n not in targets and n != WEIGHT and not n.startswith((f"{WEIGHT}[", f"{WEIGHT}.")))


def class_columns(split: Split, names: Sequence[str]) -> Split:
    """The set with one-hot targets converted to class numbers."""
    changed = {
        n: np.argmax(c, axis=1)
        for n, c in split.columns.items()
        if n in names and isinstance(c, np.ndarray) and is_one_hot(c)
    }
    if not changed:
        return split
    items = [{n: int(np.argmax(v)) if n in changed else v for n, v in item.items()} for item in split.items]
    return replace(split, columns={**split.columns, **changed}, items=items)
