"""Whether two data sets or loaders give the same rows, each with its label: compared by hashes, as plain arrays."""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from trainwright.adapters.data.reading import as_mapping
from trainwright.errors import UsageError
from trainwright.frameworks.label_names import find_label
from trainwright.probes.splits.census import digest
from trainwright.tensors.items import length, reader_of


def assert_same_rows(first: Any, second: Any, *, ordered: bool = False, most_rows: int = 100_000) -> None:
    """Require the same rows, as often and with the same labels; if ordered, in the same order; raises an AssertionError."""
    __tracebackhide__ = True
    rows, others = (list(_read_rows(data, most_rows)) for data in (first, second))
    if not rows and not others:
        raise UsageError("there are no rows to compare.")
    (missing, _), (added, _) = _part(rows, others, 2), _part(others, rows, 2)
    (gone, relabelled), (new, _) = _part(missing, added, 1), _part(added, missing, 1)
    labels, told = {inputs: list[str]() for inputs, *_ in added}, ""
    for inputs, _, _, label in added:
        labels[inputs].append(label)
    kinds = {"missing from second": [row[2] for row in gone], "in second only": [row[2] for row in new]}
    kinds["with another label"] = [f"{row[2]} in first, {labels[row[0]].pop(0)} in second" for row in relabelled]
    if ordered and not missing and not added:
        kinds["in another place"] = [row[2] for row, other in zip(rows, others) if row[:2] != other[:2]]
    for kind, held in kinds.items():
        more = [f"and {len(held) - 3:,} more"] if len(held) > 3 else []
        told += "\n  ".join([f"\n{len(held):,} {kind}:", *held[:3], *more]) if held else ""
    if told:
        raise AssertionError(f"the rows differ: first has {len(rows):,}, second {len(others):,}{told}")


def _part(rows: list[Any], others: list[Any], hashes: int) -> tuple[list[Any], list[Any]]:
    """The rows that the others lack, or have less often, by so many hashes; and those that they have."""
    left = Counter(row[:hashes] for row in others)
    parts: tuple[list[Any], list[Any]] = [], []
    for row in rows:
        parts[left[row[:hashes]] > 0].append(row)
        left[row[:hashes]] -= 1
    return parts


def _read_rows(data: Any, most_rows: int) -> Iterator[tuple[Any, ...]]:
    if hasattr(data, "__iter__") and (hasattr(data, "keys") or hasattr(data, "columns")):
        raise UsageError(f"a data set of rows is needed; got columns: {type(data).__name__}. Pass list(zip(x, y)).")
    drawn = data if hasattr(data, "__iter__") or length(data) is None else map(reader_of(data), range(len(data)))
    if getattr(data, "batch_sampler", None) is not None:  # torch's loader
        is_own = str(getattr(data.collate_fn, "__module__", "")).startswith("torch.")
        drawn = (row for batch in data for row in (_rows_of if is_own else _split)(batch))
    for number, row in enumerate(drawn):
        if number == most_rows:
            raise UsageError(f"at most most_rows={most_rows:,} rows can be compared; got more. Compare a part of both.")
        values = as_mapping(row)
        name = find_label(values) or (list(values)[-1] if "0" in values and len(values) > 1 else "")
        told = "; ".join(f"{'label' if key == name else key} {_show(value)}" for key, value in values.items())
        label = values.pop(name, None)
        yield digest(repr(_hash(values))), digest(repr(_hash(label))), f"row {number}: {told}", _show(label)


def _split(batch: Any) -> Iterable[dict[str, Any]]:
    """The rows of a batch that a function of the user's has put together, whose lists may hold rows or columns."""
    is_list = isinstance(batch, list) and not any(hasattr(one, "shape") for one in batch)
    batch = as_mapping(batch)
    sizes = {name: None if isinstance(value, Mapping) else length(value) for name, value in batch.items()}
    if is_list or len({*sizes.values()}) != 1 or None in sizes.values():
        raise UsageError(f"a batch must be columns of as many rows each; got {sizes}. Compare the data sets instead.")
    return (dict(zip(batch, row)) for row in zip(*batch.values()))


def _rows_of(batch: Any) -> Any:
    """The rows of a batch, or of a part of it, in which torch has put together columns at every depth."""
    if isinstance(batch, Mapping):
        return [dict(zip(batch, row)) for row in zip(*map(_rows_of, batch.values()), strict=True)]
    is_nested = isinstance(batch, (list, tuple)) and not isinstance(next(iter(batch), ""), (str, bytes))
    return list(zip(*map(_rows_of, batch), strict=True)) if is_nested else batch


def _hash(value: Any) -> Any:
    if isinstance(value, Mapping):
        return sorted((str(name), _hash(one)) for name, one in value.items())
    if hasattr(value, "detach"):  # NumPy knows no bfloat16
        value = value.detach().cpu().double() if value.is_floating_point() else value.cpu()
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError):  # parts of several sizes, or on a device
        return [_hash(one) for one in value]
    if array.dtype.kind in "biuf":
        is_large = array.dtype.kind in "iu" and np.abs(array).max(initial=0) > 2**53  # which float64 would round
        return array.shape, digest(array if is_large else array.astype(np.float64) + 0)
    return [_hash(one) for one in value] if isinstance(value, (list, tuple)) else repr(array.tolist())


def _show(value: Any) -> str:
    if not hasattr(value, "reshape"):
        return reprlib.repr(value)
    first = ", ".join(f"{one:.4g}" if isinstance(one, float) else str(one) for one in value.reshape(-1)[:6].tolist())
    return f"[{first}, …] of shape {tuple(value.shape)}" if value.ndim else first
