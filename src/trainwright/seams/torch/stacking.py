"""Where user code stacks rows into one tensor: the rows of a call that raised."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from trainwright.seams.listening.doors import replaced

_STACKING = (
    (torch, ("tensor", "as_tensor", "stack", "vstack", "cat", "concatenate", "concat")),
    (np, ("array", "asarray", "stack", "vstack", "concatenate")),
)


@contextlib.contextmanager
def watching_stacks(refused: Callable[[Any], object]) -> Iterator[None]:
    """While the context lasts, report rows of unequal lengths that failed to be stacked into one tensor."""

    def watched(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(rows: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return original(rows, *args, **kwargs)
            except (ValueError, RuntimeError, TypeError):
                if len(set(lengths_of(rows))) > 1:
                    refused(rows)
                raise

        return call

    with replaced((module, name, watched(getattr(module, name))) for module, names in _STACKING for name in names):
        yield


def lengths_of(rows: Any) -> tuple[int, ...]:
    """The lengths of rows that differ along one axis only; empty for anything else."""
    shapes = [_shape(row) for row in rows] if isinstance(rows, (list, tuple)) else []
    if not shapes or None in shapes or len({len(s) for s in shapes if s is not None}) > 1:
        return ()
    table = np.asarray(shapes)
    differing = np.flatnonzero((table != table[0]).any(axis=0))
    return tuple(table[:, differing[0]].tolist()) if len(differing) == 1 else ()


def _shape(row: Any) -> tuple[int, ...] | None:
    if isinstance(row, (torch.Tensor, np.ndarray)):
        return tuple(row.shape) or None
    return (len(row),) if isinstance(row, (list, tuple)) else None
