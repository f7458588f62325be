"""Arrays made from a model's outputs that report when they are compared with others.

Otherwise they behave as NumPy arrays; arrays derived from them report too, down to a single number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

WORDS: dict[Any, str] = {np.equal: "==", np.not_equal: "!=", np.subtract: "-"}

Compare = Callable[[str, np.ndarray, Any, Any, Callable[[Any, Any], Any], bool], tuple[Any, Any]]
"""Takes the operation, the predictions, the labels, the predictions' mark, the comparison function, and whether the
predictions are on the left; returns the result and its mark."""


class WatchedArray(np.ndarray):
    """An array with the mark of the tensors that it was made from."""

    mark: Any
    compare: Compare | None

    def __array_finalize__(self, made_of: Any) -> None:
        self.mark = getattr(made_of, "mark", None)
        self.compare = getattr(made_of, "compare", None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        watched = [i for i in inputs if isinstance(i, WatchedArray)]
        plain = [_plain(i) for i in inputs]
        if "out" in kwargs:
            kwargs["out"] = tuple(_plain(o) for o in kwargs["out"])
        first = watched[0] if watched else self
        call = getattr(ufunc, method)
        single = len(inputs) == 2 and len(watched) == 1 and method == "__call__" and ufunc in WORDS
        other = plain[1 - [i is first for i in inputs].index(True)] if single else None
        if single and first.compare is not None and isinstance(other, np.ndarray) and other.ndim:
            left = inputs[0] is first
            result, mark = first.compare(
                WORDS[ufunc], _plain(first), other, first.mark, lambda x, y: call(x, y, **kwargs), left
            )
            return _watched(result, mark, first.compare)
        return _watched(call(*plain, **kwargs), first.mark, first.compare)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        found = _first_watched((args, kwargs))
        # Plain arrays throughout, because a function may check for exactly that type.
        result = (
            func(*_all_plain(args), **_all_plain(kwargs))
            if func is not np.argmax
            else (super().__array_function__(func, types, args, kwargs))
        )
        return _watched(result, found.mark, found.compare) if found is not None else result

    def argmax(self, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
        result = np.asarray(self).argmax(axis, *args, **kwargs)
        columns = self.shape[axis] if isinstance(axis, int) and self.ndim else None
        mark = self.mark.indexed(columns) if columns is not None and self.mark is not None else self.mark
        return _watched(result, mark, self.compare)

    def __reduce__(self) -> Any:
        return np.asarray(self).__reduce__()


def watched(array: np.ndarray, mark: Any, compare: Compare) -> np.ndarray:
    """The same array, as one that reports comparisons."""
    found: np.ndarray = _watched(array, mark, compare)
    return found


def _watched(value: Any, mark: Any, compare: Compare | None) -> Any:
    if not isinstance(value, np.ndarray) or not value.ndim or value.dtype == object:
        return value[()] if isinstance(value, np.ndarray) and not value.ndim else value
    found = value.view(WatchedArray)
    found.mark, found.compare = mark, compare
    return found


def _plain(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, WatchedArray) else value


def _all_plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        found = [_all_plain(v) for v in value]
        return tuple(found) if isinstance(value, tuple) else found
    if isinstance(value, dict):
        return {k: _all_plain(v) for k, v in value.items()}
    return _plain(value)


def _first_watched(value: Any) -> WatchedArray | None:
    if isinstance(value, WatchedArray):
        return value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return next((w for v in inner if (w := _first_watched(v)) is not None), None)
