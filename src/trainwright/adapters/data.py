"""Reading data sets: of Hugging Face, of torch, sequences and iterables."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainwright.seams.place import failure_of
from trainwright.stages.dataset import CENSUS_LABELS, SAMPLED_ITEMS, Split

# A column of numbers is read whole (for its finiteness) while it holds at most this many values.
LARGEST_COLUMN = 50_000_000


def read_split(name: str, dataset: Any, *, seconds: float = 6.0) -> Split:
    """Read a sample of a data set, and whole columns where that is cheap.

    Args:
        seconds: how long items may be read one by one.
    """
    rows = length(dataset)
    if rows is None:
        return _read_iterable(name, dataset, seconds)
    indices = sorted({int(i) for i in np.linspace(0, rows - 1, min(rows, SAMPLED_ITEMS))}) if rows else []
    columns, class_names = whole_columns(dataset)
    items: list[Mapping[str, Any]] = []
    started = time.monotonic()
    for index in indices:
        try:
            items.append(as_mapping(dataset[index]))
        except Exception as error:  # the user's own data set raised: that is what we came to see
            return Split(
                name=name, rows=rows, items=items, indices=indices[: len(items)], columns=columns,
                read=_read(columns), class_names=class_names, failure=failure_of(error), failed_row=index,
            )  # fmt: skip
        if time.monotonic() - started > seconds / 2 and len(items) >= 16:
            break
    indices = indices[: len(items)]
    if not columns and items:
        columns, failure, failed_row = _labels_one_by_one(dataset, rows, items[0], seconds)
        if failure is not None:
            return Split(name=name, rows=rows, items=items, indices=indices, columns=columns,
                         read=_read(columns), failure=failure, failed_row=failed_row)  # fmt: skip
    return Split(
        name=name, rows=rows, items=items, indices=indices, columns=columns, read=_read(columns),
        class_names=class_names,
    )  # fmt: skip


def length(dataset: Any) -> int | None:
    """The number of rows, or None where there is none to be had."""
    try:
        return len(dataset)
    except TypeError:
        return None


def as_mapping(item: Any) -> dict[str, Any]:
    """An item's values by column name, or by "0", "1" of a tuple."""
    if isinstance(item, Mapping) or hasattr(item, "keys"):
        return {str(k): item[k] for k in item.keys()}  # noqa: SIM118 (a BatchEncoding is no Mapping)
    if isinstance(item, (tuple, list)):
        return {str(i): v for i, v in enumerate(item)}
    return {"0": item}


def whole_columns(dataset: Any) -> tuple[dict[str, Sequence[Any]], dict[str, Sequence[str]]]:
    """Columns that can be read without making items, and the class names of those that have them."""
    if _is_hugging_face(dataset):
        return _arrow_columns(dataset)
    arrays = getattr(dataset, "tensors", None)
    if isinstance(arrays, (tuple, list)) and all(hasattr(a, "detach") for a in arrays):
        return {str(i): a.detach().cpu().numpy() for i, a in enumerate(arrays)}, {}
    return {}, {}


def _is_hugging_face(dataset: Any) -> bool:
    return hasattr(dataset, "column_names") and hasattr(dataset, "features") and hasattr(dataset, "data")


def _arrow_columns(dataset: Any) -> tuple[dict[str, Sequence[Any]], dict[str, Sequence[str]]]:
    if dataset.format.get("type") == "custom":  # set_transform: the stored columns are not what is read
        return {}, {}
    plain = dataset.with_format(None)
    columns: dict[str, Sequence[Any]] = {}
    for name in plain.column_names:
        part = plain.select_columns([name])
        if len(part) > CENSUS_LABELS:
            part = part.select(range(CENSUS_LABELS)) if _is_nested(part, name) else part
        if (values := _column_values(part, name)) is not None:
            columns[name] = values
    names = {n: f.names for n, f in dataset.features.items() if getattr(f, "names", None)}
    return columns, names


def _is_nested(dataset: Any, name: str) -> bool:
    return isinstance(dataset[0][name], (list, tuple, dict, str))


def _column_values(part: Any, name: str) -> Sequence[Any] | None:
    """The column as a numpy array where it is flat or of rows of one size, else as a list."""
    first = part[0][name] if len(part) else None
    if isinstance(first, dict) or (first is not None and not isinstance(first, (int, float, str, bool, list))):
        return None  # images and the like are read as items
    table = part.with_format("arrow")[:]
    chunks = table.column(name).combine_chunks()
    if isinstance(first, list):
        return _list_rows(chunks)
    if isinstance(first, (int, float)) and chunks.null_count == 0:
        return np.asarray(chunks.to_numpy(zero_copy_only=False))
    values: Sequence[Any] = chunks.to_pylist()
    return values


def _list_rows(chunks: Any) -> Sequence[Any] | None:
    """Rows of a list column: views of one flat array where its values are flat numbers."""
    if not hasattr(chunks, "offsets"):  # fixed-size lists
        if len(chunks) and hasattr(chunks.type, "list_size"):
            flat = chunks.flatten().to_numpy(zero_copy_only=False)
            return list(flat.reshape(len(chunks), -1)) if flat.dtype != object else None
        return None
    flat_values = chunks.values
    if not str(flat_values.type).startswith(("int", "uint", "float", "double", "half")) or chunks.null_count:
        return chunks.to_pylist() if len(chunks.values) < LARGEST_COLUMN // 100 else None
    flat, offsets = flat_values.to_numpy(zero_copy_only=False), chunks.offsets.to_numpy()
    return [flat[a:b] for a, b in itertools.pairwise(offsets)]


def _labels_one_by_one(
    dataset: Any, rows: int, first: Mapping[str, Any], seconds: float
) -> tuple[dict[str, Sequence[Any]], Any, int | None]:
    """Read items in their order for as long as it may take; keep what is small of them."""
    kept: dict[str, list[Any]] = {k: [] for k in first}
    started = time.monotonic()
    for row in range(min(rows, CENSUS_LABELS)):
        if time.monotonic() - started > seconds:
            break
        try:
            item = as_mapping(dataset[row])
        except Exception as error:  # the user's own data set raised
            return dict(kept), failure_of(error), row
        for key in kept:
            kept[key].append(item.get(key))
    return dict(kept), None, None


def _read_iterable(name: str, dataset: Any, seconds: float) -> Split:
    items: list[Mapping[str, Any]] = []
    started = time.monotonic()
    try:
        for item in itertools.islice(iter(dataset), SAMPLED_ITEMS):
            items.append(as_mapping(item))
            if time.monotonic() - started > seconds:
                break
    except Exception as error:  # the user's own data set raised
        return Split(name=name, rows=None, items=items, indices=range(len(items)), kind="iterable",
                     failure=failure_of(error), failed_row=len(items))  # fmt: skip
    rows = len(items) if len(items) < SAMPLED_ITEMS and time.monotonic() - started <= seconds else None
    return Split(name=name, rows=rows, items=items, indices=range(len(items)), kind="iterable")


def _read(columns: Mapping[str, Sequence[Any]]) -> int:
    return max((len(c) for c in columns.values()), default=0)


@dataclass(frozen=True)
class Named:
    """An object of the user's script and the expression that reaches it."""

    expression: str
    value: Any


def objects_in_scope(scope: Mapping[str, Any]) -> Iterator[Named]:
    """The script's objects, and the members of its dictionaries (`tokenized["train"]`)."""
    for name, value in scope.items():
        if name.startswith("_") or isinstance(value, type):
            continue
        yield Named(name, value)
        if isinstance(value, dict) and len(value) <= 16:
            for key, member in value.items():
                if isinstance(key, str):
                    yield Named(f'{name}["{key}"]', member)
