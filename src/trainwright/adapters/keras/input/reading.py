"""Reads one of fit's sets for the dataset stage: whole columns of arrays, the first rows of streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trainwright.adapters.data.reading import FEWEST_ITEMS, SAMPLE_BYTES
from trainwright.adapters.keras.input.fit_data import FitData
from trainwright.adapters.keras.input.nested_values import name_arrays
from trainwright.adapters.keras.input.one_batch import WEIGHT, FitBatch, X
from trainwright.adapters.keras.input.sources import Arrays
from trainwright.frameworks.label_names import AMONG_INPUTS
from trainwright.probes.splits.labels import is_one_hot
from trainwright.probes.splits.values import evenly
from trainwright.seams.failures.blame import failure_of, tolerated
from trainwright.stages import CENSUS_LABELS, SAMPLED_ITEMS, Split
from trainwright.timing import now

# Targets such as images are counted over this many values.
MOST_TARGET_VALUES = 4_000_000
# As much is read of data that form their own batches, and for so long.
MOST_STREAM_BYTES, MOST_STREAM_SECONDS = 256 * 2**20, 6.0


def read_set(data: FitData) -> Split:
    """Read a set: all rows of arrays, the first rows of other data."""
    if isinstance(data.source, Arrays):
        return _read_arrays(data, data.source)
    read: list[FitBatch] = []
    rows, size, started, ended, failure = 0, 0, now(), False, None
    try:
        for batch in data.elements():
            read.append(batch)
            rows, size = rows + batch.rows, size + sum(np.asarray(a).nbytes for a in batch.view().values())
            if rows >= CENSUS_LABELS or size > MOST_STREAM_BYTES or now() - started > MOST_STREAM_SECONDS:
                break
        else:
            ended, data.seen_batches = True, len(read)
    except Exception as error:  # the user's own data raised, which is a finding
        failure = failure_of(error)
    data.read = read
    views = [{n: np.asarray(a)[None] for n, a in b.view().items()} if b.is_row else b.view() for b in read]
    columns = {n: _joined([v[n] for v in views if n in v]) for n in (views[0] if views else ())}
    for name in target_view(read[0]) if read else ():
        columns[name] = _part_of_targets(columns[name])
    return Split(
        name=data.name,
        rows=rows if ended else data.length,
        kind="iterable",
        columns=columns,
        read=rows,
        failure=failure,
        failed_row=rows if failure else None,
        **_sample(columns, rows),
    )


def target_names(data: FitData) -> tuple[str, ...]:
    """The names of the targets; if the data have none, the usual names of labels among the inputs."""
    if isinstance(data.source, Arrays):
        batch = FitBatch(x=data.source.x, y=data.source.y)
        own = [n for n in batch.view() if n not in dict(name_arrays(batch.x, X))]
    else:
        first = []
        with tolerated():  # data that form no batch are reported by the batch stage
            first = data.pool(1)
        own = list(target_view(first[0])) if first else []
    return tuple(own) or AMONG_INPUTS


def target_view(batch: FitBatch) -> dict[str, Any]:
    """The targets of a batch under the names in its view."""
    plain = FitBatch(x=batch.x, y=batch.y)
    return {n: a for n, a in plain.view().items() if n not in dict(name_arrays(batch.x, X))}


def _read_arrays(data: FitData, source: Arrays) -> Split:
    rows = source.rows or 0
    try:
        x, y, weight = source.whole()
        whole = FitBatch(x=x, y=y, sample_weight=weight)
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
    chosen = evenly(range(shortest), count)
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
