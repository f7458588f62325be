"""Measurements of the dataset stage: columns, label counts, and hashes of the rows."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trainwright.probes.splits.labels import measure_labels
from trainwright.probes.splits.odd_rows import OddRows, extreme_rows, stack_values
from trainwright.probes.splits.values import evenly, is_text, lengths_of, plain_number, plain_values
from trainwright.stages import CENSUS_LABELS, SAMPLED_ITEMS, ColumnFacts, Extremes, OddRow, Split, SplitFacts
from trainwright.stages.dataset import FEW_VALUES
from trainwright.timing import now

# At most this many rows with missing or non-finite values are listed, which limits what a repair may leave out.
MOST_NAMED_ROWS = 100_000
# Mean and deviation of large items are computed from about this many values of the sample.
MOST_VALUES = 2_000_000
# Rows are hashed no longer than this.
HASHING_SECONDS = 4.0
# Names of columns that number the rows; they make equal rows look different.
_NUMBERING = ("idx", "id", "index", "guid", "__index_level_0__")
# Inputs that are determined by the tokens.
_FOLLOWING = ("attention_mask", "token_type_ids", "special_tokens_mask", "position_ids")


def measure_split(
    split: Split, label_names: Sequence[str], inputs: Sequence[str] = (), *, one_hot: bool = False
) -> SplitFacts:
    """Return the facts of a set that was read.

    Args:
        label_names: the columns that may contain the labels, most likely first.
        inputs: the names of the model's arguments.
        one_hot: treat one-hot label rows as classes.
    """
    names = list(dict.fromkeys([*split.columns, *(k for item in split.items for k in item)]))
    label = next((n for n in label_names if n in names), None)
    if label is None and names == ["0", "1"]:  # (inputs, label), as torch's data sets give them
        label = "1"
    columns = tuple(_measure_column(n, split.columns.get(n), split) for n in names)
    labels = None
    read = 0
    if label is not None:
        values = split.columns.get(label)
        values = values if values is not None else [item.get(label) for item in split.items]
        read = len(values)
        labels = measure_labels(label, values, split.class_names.get(label, ()), one_hot=one_hot)
        labels = replace(labels, distinct_before_cut=split.distinct_before_cut.get(label))
    single = labels is not None and labels.kind == "real" and labels.per_row == 1
    hashed, rows = _hash_rows(split, label, inputs)
    return SplitFacts(
        name=split.name,
        rows=split.rows,
        kind=split.kind,
        sampled=len(split.items),
        columns=columns,
        labels=labels,
        labels_complete=split.rows is not None and read >= split.rows,
        failure=split.failure,
        failed_row=split.failed_row,
        row_hashes=tuple(hashed),
        hash_rows=rows,
        odd=tuple(_odd_rows(split, names)),
        read=max(split.read, len(split.items), *(len(d) for d in split.digests.values()), 0),
        extremes=tuple(_extremes(split, [n for n in names if n not in _NUMBERING], label, single)),
    )


def _odd_rows(split: Split, names: Sequence[str]) -> list[OddRow]:
    """The extreme rows of whole columns, and of the sampled items for other columns."""
    found = OddRows()
    for name in names:
        column = split.columns.get(name)
        if column is not None:
            found.add_column(name, column, range(len(column)))
        else:
            found.add_column(name, stack_values([item.get(name) for item in split.items]), split.indices)
    return found.found()


def _extremes(split: Split, names: Sequence[str], label: str | None, real_labels: bool) -> Iterator[Extremes]:
    """The extremes of inputs that are not whole numbers, and of the targets of a regression."""
    for name in names:
        column = split.columns.get(name)
        values = np.asarray(column) if isinstance(column, np.ndarray) else _stacked(split, name, column)
        wanted = real_labels if name == label else values is not None and values.dtype.kind == "f"
        if values is not None and wanted:
            found = extreme_rows(name, values, range(len(values)) if column is not None else split.indices)
            if found is not None:
                yield found


def _stacked(split: Split, name: str, column: Sequence[Any] | None) -> np.ndarray | None:
    """Separate rows as one array; None if they are no numbers, have several shapes, or are too large together."""
    values = column if column is not None else [item.get(name) for item in split.items]
    if not len(values) or isinstance(values[0], (str, dict, type(None))):
        return None
    try:
        first = np.asarray(plain_values(values[:1])[0])
        if first.dtype.kind not in "iuf" or first.size * len(values) > MOST_VALUES * 4:
            return None
        rows = [np.asarray(v) for v in plain_values(values)]
    except (ValueError, TypeError):  # lists of several lengths, objects
        return None
    same = all(row.shape == first.shape and row.dtype.kind in "iuf" for row in rows)
    return np.stack(rows) if same else None


def overlap(train: SplitFacts, evaluation: SplitFacts | None) -> list[tuple[int, int]]:
    """Evaluation rows whose inputs also occur in training, each with the first matching training row."""
    if evaluation is None:
        return []
    first: dict[int, int] = {}
    for row, digest in zip(train.hash_rows, train.row_hashes):
        first.setdefault(digest, row)
    return [(r, first[d]) for r, d in zip(evaluation.hash_rows, evaluation.row_hashes) if d in first]


def _measure_column(name: str, values: Sequence[Any] | None, split: Split) -> ColumnFacts:
    rows: Sequence[int] = range(len(values)) if values is not None else split.indices
    values = values if values is not None else [item.get(name) for item in split.items]
    if isinstance(values, np.ndarray) and values.dtype.kind in "iufb" and len(values):
        return _measure_table(values, {"name": name, "counted": len(values)})
    missing = [row for row, v in zip(rows, values) if v is None]
    base: dict[str, Any] = {
        "name": name,
        "counted": len(values),
        "missing": len(missing),
        "missing_rows": tuple(missing[:MOST_NAMED_ROWS]),
    }
    present = [(row, v) for row, v in zip(rows, plain_values(values)) if v is not None]
    if not present:
        return ColumnFacts(kind="missing", **base)
    first = present[0][1]
    if isinstance(first, str):
        texts = [v for _, v in present[:CENSUS_LABELS] if isinstance(v, str)]
        return ColumnFacts(
            kind="text", dtype="text", values=_few(Counter(texts)), **base, **lengths_of([len(v) for v in texts])
        )
    if isinstance(first, (list, tuple)) and first and isinstance(first[0], str):
        sizes = [len(v) for _, v in present[:CENSUS_LABELS]]
        return ColumnFacts(kind="texts", dtype="text", **base, **lengths_of(sizes))
    try:
        arrays = [(row, np.asarray(v)) for row, v in present]
    except ValueError:
        return ColumnFacts(kind="other", dtype=type(first).__name__, **base)
    if arrays[0][1].dtype.kind not in "iufb":
        return ColumnFacts(kind="other", dtype=type(first).__name__, **base)
    return _measure_numbers(arrays, base | _in_passing(split.non_finite.get(name)))


def _in_passing(bad: Mapping[int, int] | None) -> dict[str, Any]:
    """Non-finite values that were counted while the items were read."""
    if bad is None:
        return {}
    return {"non_finite": sum(bad.values()), "non_finite_rows": tuple(bad)[:MOST_NAMED_ROWS]}


def _measure_table(values: np.ndarray, base: dict[str, Any]) -> ColumnFacts:
    """A column whose rows have the same shape, as one array (rows, ...)."""
    shape = values.shape[1:]
    kind = "numbers" if shape else {"b": "boolean", "f": "float"}.get(values.dtype.kind, "integer")
    bad: dict[str, Any] = {}
    if values.dtype.kind == "f":
        counts = np.zeros(len(values), dtype=np.int64)
        step = max(1, 4_000_000 // max(1, int(np.prod(shape))))  # at most some MB at a time
        for start in range(0, len(values), step):
            part = values[start : start + step].reshape(len(values[start : start + step]), -1)
            counts[start : start + step] = (~np.isfinite(part)).sum(axis=1)
        rows = np.flatnonzero(counts)
        bad = {"non_finite": int(counts.sum()), "non_finite_rows": tuple(int(r) for r in rows[:MOST_NAMED_ROWS])}
    few = values[:: len(values) // SAMPLED_ITEMS + 1] if shape else values
    return ColumnFacts(
        kind=kind,
        dtype=str(values.dtype),
        shape=shape,
        **(lengths_of([shape[0]]) if shape else {"values": _few_numbers(values)}),
        **_statistics(few.reshape(-1)[:: few.size // MOST_VALUES + 1] if shape else few),
        **(_of_each_feature(few) if len(shape) == 1 else {}),
        **bad,
        **base,
    )


def _measure_numbers(numbered: Sequence[tuple[int, np.ndarray]], base: dict[str, Any]) -> ColumnFacts:
    """A column of numbers, or of arrays of any shapes, as (row, values)."""
    arrays = [a for _, a in numbered[:CENSUS_LABELS]]
    shape = arrays[0].shape
    kind = "numbers" if shape else {"b": "boolean", "f": "float"}.get(arrays[0].dtype.kind, "integer")
    same = all(a.shape == shape for a in arrays)
    sample = evenly(arrays, SAMPLED_ITEMS)
    step = sum(a.size for a in sample) // MOST_VALUES + 1
    flat = np.concatenate([a.reshape(-1)[::step] for a in sample]) if shape else np.asarray(arrays)
    facts: dict[str, Any] = _statistics(flat)
    if same and len(shape) == 1 and len(arrays) > 1:
        facts |= _of_each_feature(np.stack(sample))
    if not shape and same:
        facts["values"] = _few_numbers(flat)
    if "non_finite" not in base:
        bad = [(row, int((~np.isfinite(a)).sum())) for row, a in numbered if a.dtype.kind == "f"]
        base = base | _in_passing({row: n for row, n in bad if n})
    lengths = lengths_of([len(a) if a.shape else 0 for a in arrays]) if shape else {}
    return ColumnFacts(kind=kind, dtype=str(arrays[0].dtype), shape=shape, **lengths, **facts, **base)


def _statistics(values: np.ndarray) -> dict[str, Any]:
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    if not finite.size:
        return {}
    return {"minimum": float(finite.min()), "maximum": float(finite.max())}


def _of_each_feature(table: np.ndarray) -> dict[str, Any]:
    if not 1 < table.shape[1] <= 4096 or len(table) < 2:
        return {}
    wide = np.where(np.isfinite(table), table, 0).astype(np.float64)
    return {"feature_deviations": tuple(wide.std(axis=0).tolist()), "feature_means": tuple(wide.mean(axis=0).tolist())}


def _few(counts: Mapping[Any, int]) -> dict[Any, int]:
    return dict(counts) if len(counts) <= FEW_VALUES else {}


def _few_numbers(values: np.ndarray) -> dict[Any, int]:
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    # If a column has many distinct values in its first thousand rows, the values are not counted: sorting would be slow.
    if np.unique(finite[:1000]).size > FEW_VALUES:
        return {}
    return _few({plain_number(v): int(n) for v, n in zip(*np.unique(finite, return_counts=True))})


def _hash_rows(split: Split, label: str | None, inputs: Sequence[str]) -> tuple[list[int], Sequence[int]]:
    """Hashes of the rows' inputs, and the rows' indices: from whole columns if available, or else from the sample."""
    names = list(dict.fromkeys([*split.columns, *split.digests, *(k for item in split.items[:1] for k in item)]))
    names = [n for n in names if n != label and n not in ("label", "labels", *_NUMBERING)]
    taken = (
        [n for n in names if n in inputs and n not in _FOLLOWING] or [n for n in names if is_text(n, split)] or names
    )
    read = min((len(split.columns.get(n, split.digests.get(n, ()))) for n in taken), default=0)
    rows: Sequence[int] = range(read) if read else split.indices
    hashes: list[int] = []
    started = now()
    for digests in _digests(split, taken, whole=read > 0):
        hashes.append(_combined(digests))
        if len(hashes) % 1000 == 0 and (len(hashes) >= CENSUS_LABELS or now() - started > HASHING_SECONDS):
            break
    return hashes, rows[: len(hashes)]


def _digests(split: Split, names: Sequence[str], *, whole: bool) -> Iterator[Sequence[int]]:
    if not names:
        return iter(())
    if not whole:
        return ([digest(item.get(n)) for n in names] for item in split.items)
    columns = [split.digests[n] if n in split.digests else map(digest, split.columns[n]) for n in names]
    return zip(*columns)


def _combined(digests: Sequence[int]) -> int:
    joined = b"".join(d.to_bytes(8, "big") for d in digests)
    return int.from_bytes(hashlib.blake2b(joined, digest_size=8).digest(), "big")


def digest(value: Any) -> int:
    """A hash of one value of a row: stripped text, or the bytes of numbers."""
    if isinstance(value, str):
        seen = value.strip().encode("utf-8", "replace")
    else:
        try:
            array = np.ascontiguousarray(plain_values([value])[0])
        except ValueError:  # lists of several lengths
            array = np.empty((), dtype=object)
        seen = array.tobytes() if array.dtype != object else repr(value).encode("utf-8", "replace")
    return int.from_bytes(hashlib.blake2b(seen, digest_size=8).digest(), "big")
