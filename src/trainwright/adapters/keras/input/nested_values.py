"""Nested values of Keras data: dictionaries, lists and tuples of arrays of every kind.

keras.tree is not used: it sorts dictionary keys, whose order is often that of the outputs, and treats a mapping that is
not a dictionary as an array.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np


def is_sequence(value: Any) -> bool:
    """Whether it is a list of arrays, not one of numbers or words, which is an array itself."""
    return isinstance(value, (list, tuple)) and not (
        len(value) and isinstance(value[0], (int, float, str, bytes, np.number))
    )


def leaves(value: Any) -> list[Any]:
    """The arrays of a structure in order; None contributes none."""
    if isinstance(value, Mapping):
        return [leaf for member in value.values() for leaf in leaves(member)]
    if is_sequence(value):
        return [leaf for member in value for leaf in leaves(member)]
    return [] if value is None else [value]


def map_leaves(change: Callable[[Any], Any], value: Any) -> Any:
    """The same structure with every array changed."""
    if isinstance(value, Mapping):
        return {k: map_leaves(change, v) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_leaves(change, v) for v in value))
    if is_sequence(value):
        return (tuple if isinstance(value, tuple) else list)(map_leaves(change, v) for v in value)
    return None if value is None else change(value)


def name_arrays(value: Any, root: str) -> Iterator[tuple[str, Any]]:
    """The arrays of a structure by name: a dictionary's keys unchanged, "x[1]" for a list, otherwise the root."""
    if isinstance(value, Mapping):
        for key, member in value.items():
            yield from name_arrays(member, str(key))
    elif is_sequence(value):
        for position, member in enumerate(value):
            yield from name_arrays(member, f"{root}[{position}]")
    elif value is not None:
        yield root, value


def replace_arrays(value: Any, root: str, view: Mapping[str, Any]) -> Any:
    """The structure with a view's arrays under their names; arrays that the view lacks are dropped."""
    if isinstance(value, Mapping):
        parts = {k: replace_arrays(m, str(k), view) for k, m in value.items()}
        return {k: p for k, p in parts.items() if p is not None or value[k] is None}
    if is_sequence(value):
        members = [replace_arrays(m, f"{root}[{i}]", view) for i, m in enumerate(value)]
        return type(value)(*members) if hasattr(value, "_fields") else type(value)(members)
    return None if value is None else view.get(root)


def rows_of(value: Any) -> int | None:
    """The number of rows of an array; None for a single value."""
    shape = getattr(value, "shape", None)
    if shape is None:
        return len(value) if hasattr(value, "__len__") and not isinstance(value, (str, bytes)) else None
    return int(shape[0]) if len(shape) and shape[0] is not None else None


def count_rows(value: Any) -> int | None:
    """The number of rows of a structure, from its first array."""
    first = next(iter(leaves(value)), None)
    return None if first is None else rows_of(first)


def take(value: Any, index: Any) -> Any:
    """Rows of an array of any kind, as a NumPy array; `index` is a slice or an array of row numbers."""
    kind = _kind(value)
    if kind == "pandas":
        return to_numpy(value.iloc[index])
    if kind == "ragged" and not isinstance(index, slice):
        return to_numpy(sys.modules["tensorflow"].gather(value, index))
    if kind == "tensorflow" and not isinstance(index, slice):
        return to_numpy(value)[index] if value.dtype.name == "string" else value.numpy()[index]
    if kind == "sparse tensor":
        return to_numpy(value)[index]
    if kind == "scipy":
        return to_numpy(value.tocsr()[index])
    if kind in ("list", "array-like"):
        return np.asarray(value)[index]
    return to_numpy(value[index])


def to_numpy(value: Any) -> Any:
    """An array of any kind in NumPy: half precision as float32, strings as objects, ragged rows padded with 0."""
    kind = _kind(value)
    if kind == "ragged":
        return to_numpy(value.to_tensor())
    if kind == "sparse tensor":
        return to_numpy(sys.modules["tensorflow"].sparse.to_dense(value))
    if kind == "pandas":
        return _of_pandas(value)
    if kind == "scipy":
        return np.asarray(value.todense())
    if kind == "torch":
        value = value.detach().cpu()
        return (value.float() if "16" in str(value.dtype) and value.is_floating_point() else value).numpy()
    array = np.asarray(value.numpy() if kind == "tensorflow" else value)
    if array.dtype.kind == "V" or array.dtype.name in ("float16", "bfloat16"):  # ml_dtypes' bfloat16 is a void type
        return array.astype(np.float32)
    if array.dtype.kind == "O":
        return _texts(array)
    return array


def _texts(array: np.ndarray) -> np.ndarray:
    """TensorFlow's bytes as text; other objects unchanged."""
    flat = array.reshape(-1)
    if flat.size == 0 or not isinstance(flat[0], bytes):
        return array
    read = [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in flat]
    return np.array(read, dtype=object).reshape(array.shape)


def _of_pandas(value: Any) -> np.ndarray:
    """A frame or series as the array that fit makes of it; a numeric series gets a second axis of 1."""
    array = value.to_numpy()
    if array.dtype.kind == "O":
        return _texts(array)
    return np.asarray(array)


def _kind(value: Any) -> str:
    """The kind of array: numpy, tensorflow, ragged, sparse tensor, torch, pandas, scipy, list, array-like."""
    if isinstance(value, np.ndarray):
        return "numpy"
    if isinstance(value, (list, tuple, int, float, str, bytes, bool, np.generic)):
        return "list"
    for parent in type(value).__mro__:
        module = parent.__module__.split(".")[0]
        if module == "tensorflow":
            return {"RaggedTensor": "ragged", "SparseTensor": "sparse tensor"}.get(type(value).__name__, "tensorflow")
        if module in ("torch", "pandas", "scipy"):
            return module
    return "array-like"


def is_array(value: Any) -> bool:
    """Whether rows can be taken from it and it is not a source of batches."""
    return hasattr(value, "__array__") or _kind(value) in ("ragged", "scipy", "sparse tensor")


def stack(rows: Sequence[Any]) -> Any:
    """Stack rows of the same structure into one structure of arrays."""
    first = rows[0]
    if isinstance(first, Mapping):
        return {k: stack([r[k] for r in rows]) for k in first}
    if isinstance(first, (list, tuple)):
        return type(first)(stack([r[i] for r in rows]) for i in range(len(first)))
    return None if first is None else np.stack([np.asarray(r) for r in rows])


def join_batches(parts: Sequence[Any]) -> Any:
    """Batches of the same structure, one behind the other; shorter rows end with 0."""
    first = parts[0]
    if isinstance(first, Mapping):
        return {k: join_batches([p[k] for p in parts]) for k in first}
    if is_sequence(first):
        return type(first)(join_batches([p[i] for p in parts]) for i in range(len(first)))
    return None if first is None else np.concatenate(_as_wide_as_widest([np.atleast_1d(p) for p in parts]))


def _as_wide_as_widest(members: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """Batches that are padded to their own longest row, padded to the longest of all."""
    shapes = {member.shape[1:] for member in members}
    if len(shapes) == 1 or len({len(shape) for shape in shapes}) > 1:
        return members
    widest = [max(sizes) for sizes in zip(*shapes)]
    return [np.pad(m, [(0, 0), *((0, w - s) for w, s in zip(widest, m.shape[1:]))]) for m in members]
