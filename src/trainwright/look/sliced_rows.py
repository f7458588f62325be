"""The rows of a training without a loader: those of the script's arrays that its batches are cut from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import TensorDataset

from trainwright.core import Place

# Rows of the batch that are looked up in an array.
LOOKED_UP = 8
# Fewer rows are an example to look at, not an evaluation.
FEWEST_ROWS = 16
_HELD_OUT = ("val", "valid", "test", "eval", "dev", "held")


@dataclass(frozen=True, kw_only=True)
class Sliced:
    """Arrays whose rows are a batch's, by their names in the step, and where they hold some rows of it."""

    columns: Mapping[str, torch.Tensor]
    at: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class LoaderlessPass:
    """Rows that the model has answered without gradients and without a loader, in one pass."""

    rows: np.ndarray
    """(n, values)."""
    labels: np.ndarray
    is_trained_on: np.ndarray
    """(n,) Whether a row of the training was equal."""
    where: Place | None


def find_arrays(view: Mapping[str, Any], key: str | None, scope: Mapping[str, Any]) -> Sliced | None:
    """The script's arrays, of one length, whose rows the step was given: rows paired there as in the batch."""
    batch = {k: v for k, v in view.items() if isinstance(v, torch.Tensor) and v.dim() and v.layout == torch.strided}
    inputs = [k for k in batch if k != key]
    if key not in batch or not inputs or len({len(v) for v in batch.values()}) > 1 or not len(batch[inputs[0]]):
        return None
    widest = max(inputs, key=lambda k: batch[k][0].numel())
    chosen = np.linspace(0, len(batch[widest]) - 1, LOOKED_UP).astype(int).tolist()
    for array, places in sorted(_list_sources(batch[widest][chosen], scope), key=lambda pair: len(pair[0])):
        found, paired = {widest: array}, places
        for name in (k for k in batch if k != widest):
            for other, at in _list_sources(batch[name][chosen], scope):
                if len(other) == len(array) and bool((paired & at).any(1).all()):
                    found[name], paired = other, paired & at
                    break
        if len(found) == len(batch):
            return Sliced(columns=found, at=[int(row.nonzero()[0]) for row in paired])
    return None


def _list_sources(rows: torch.Tensor, scope: Mapping[str, Any]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """The script's arrays that contain all of these rows, and where (rows, length)."""
    for value in scope.values():
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            value = torch.as_tensor(value)
        if not isinstance(value, torch.Tensor) or value.layout != torch.strided or value.requires_grad or value.is_meta:
            continue
        if value.dim() == rows.dim() and value.shape[1:] == rows.shape[1:] and len(value):
            flat = value.cpu().reshape(len(value), -1)
            at = torch.stack([(flat == row.detach().cpu().reshape(-1)).all(1) for row in rows])
            if bool(at.any(1).all()):
                yield value, at


def find_evaluated(
    passes: Sequence[LoaderlessPass], sliced: Sliced, key: str, scope: Mapping[str, Any]
) -> LoaderlessPass | None:
    """The first evaluation of rows like those of training that no step was made with, unless the script calls them so."""
    inputs = [array for name, array in sliced.columns.items() if name != key]
    labels = sliced.columns[key]
    for one in passes if len(inputs) == 1 else ():
        width = inputs[0][0].numel()
        if (
            len(one.rows) < FEWEST_ROWS
            or one.rows.shape[1:] != (width,)
            or one.labels.size != len(one.rows) * labels[0].numel()
        ):
            continue
        is_named = any(
            any(word in name.lower() for word in _HELD_OUT) and np.shape(value)[:1] == one.rows.shape[:1]
            for name, value in scope.items()
            if isinstance(value, (np.ndarray, torch.Tensor))
        )
        if is_named or not one.is_trained_on.any():
            return one
    return None


def set_of(columns: Mapping[str, Any], like: Sliced) -> TensorDataset:
    """Rows as a set, whose columns are in the order and of the shapes of the training's."""
    shaped = (
        torch.as_tensor(columns[name]).cpu().reshape(-1, *array.shape[1:]) for name, array in like.columns.items()
    )
    return TensorDataset(*(values.to(array.dtype) for values, array in zip(shaped, like.columns.values())))
