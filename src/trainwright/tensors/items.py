"""Reads single items of a data set, also of one that knows only whole batches."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

_TORCH = "torch.utils.data.dataset"


def reader_of(data: Any) -> Callable[[int], Any]:
    """The function that reads an item by its number; of a batch that is no list of rows, a batch of one row."""
    return functools.partial(_of_a_batch if _gives_batches(data) else _of_itself, data)


def _gives_batches(data: Any) -> bool:
    """Whether a set has `__getitems__` and no `__getitem__` of its own: torch's Dataset has one that raises."""
    single = getattr(type(data), "__getitem__", None)
    if not hasattr(type(data), "__getitems__") or getattr(single, "__module__", _TORCH) != _TORCH:
        return False
    name = getattr(single, "__qualname__", "")
    return name == "Subset.__getitem__" and _gives_batches(data.dataset) if name.startswith("Subset.") else True


def _of_itself(data: Any, row: int) -> Any:
    try:
        return operator.getitem(data, row)
    except NotImplementedError:  # the set's own way to say that it wants whole batches
        if not hasattr(type(data), "__getitems__"):
            raise
    return _of_a_batch(data, row)


def _of_a_batch(data: Any, row: int) -> Any:
    rows = data.__getitems__(*([row],))  # passed on with a star: what it raises is the user's
    return rows[0] if isinstance(rows, list) and len(rows) == 1 else rows


def length(dataset: Any) -> int | None:
    """The number of rows; None if it is unknown."""
    try:
        return len(dataset)
    except (TypeError, NotImplementedError, AttributeError):
        return None
