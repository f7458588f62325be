"""How a set's rows reach the model and the loss: under which names, in which order, and what becomes of their labels on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from trainwright.seams.torch.step_record import StepRecord
from trainwright.stages import Mispaired, Split
from trainwright.tensors.torch import objects as tensors

# Values that stand for classes are seen this often on average; ids and measurements are not.
_EACH_SEEN = 4


def rename_columns(split: Split, names: Mapping[str, str]) -> Split:
    """A set with the names of the step; unchanged if its rows lack one of these positions: they were collated otherwise."""
    if not all(set(names) <= set(item) for item in split.items):
        return split

    def rename(held: Mapping[str, Any]) -> dict[str, Any]:
        return {names.get(name, name): value for name, value in held.items()}

    return replace(
        split,
        items=[rename(item) for item in split.items],
        columns=rename(split.columns),
        digests=rename(split.digests),
        non_finite=rename(split.non_finite),
    )


def names_of_items(columns: Mapping[str, torch.Tensor], view: Mapping[str, Any]) -> dict[str, str]:
    """The name in the step of each column of a batch whose values are the same there."""
    found: dict[str, str] = {}
    for position, value in columns.items():
        if (
            name := next((n for n, v in view.items() if n not in found.values() and is_equal(value, v)), None)
        ) is not None:
            found[position] = name
    return found


@dataclass(frozen=True)
class CoarserLabels:
    """Labels that the step makes coarser for its loss: cut to integers, or several values made one."""

    position: str
    """Where the items have them."""
    name: str
    """Their name in the step."""
    becomes: Mapping[float, int] | None
    """What each value becomes; None: it loses its fraction."""

    def apply(self, split: Split) -> Split:
        """A set whose labels are as the loss gets them."""
        column = split.columns.get(self.name)
        values = column if column is not None else [item[self.name] for item in split.items if self.name in item]
        before = np.asarray([float(v) for v in values])
        changed: dict[str, Any] = {"distinct_before_cut": {self.name: int(np.unique(before).size)}}
        if column is not None:
            changed["columns"] = {**split.columns, self.name: self._coarsen(before)}
        items = [
            {**item, self.name: int(self._coarsen(np.asarray([float(item[self.name])]))[0])}
            if self.name in item
            else item
            for item in split.items
        ]
        return replace(split, items=items, **changed)

    def _coarsen(self, values: np.ndarray) -> np.ndarray:
        """Those never seen in a batch stay as they are."""
        if self.becomes is None:
            return np.asarray(np.trunc(np.nan_to_num(values)), dtype=np.int64)
        return np.asarray([self.becomes.get(float(v), v) for v in values], dtype=np.int64)


def find_cut(
    columns: Mapping[str, torch.Tensor], key: str | None, labels: Any, taken: Mapping[str, str]
) -> CoarserLabels | None:
    """The labels of a batch, if the loss gets them coarser; of positions whose values are known by another name, none is."""
    if key is None or not isinstance(labels, torch.Tensor) or labels.is_floating_point() or key in taken.values():
        return None
    for position, value in columns.items():
        if position in taken or value.numel() != labels.numel():
            continue
        if value.is_floating_point() and is_equal(value.trunc(), labels):
            return CoarserLabels(position, key, None)
        pairs = list(zip(value.reshape(-1).tolist(), labels.reshape(-1).tolist()))
        becomes = {float(one): int(other) for one, other in pairs}
        is_mapped = all(becomes[float(one)] == int(other) for one, other in pairs)
        if is_mapped and 2 <= len(becomes) <= len(pairs) / _EACH_SEEN and len(set(becomes.values())) < len(becomes):
            return CoarserLabels(position, key, becomes)
    return None


def is_equal(left: Any, right: Any) -> bool:
    """Whether two tensors hold the same values in the same order, of whatever type and shape."""
    if not isinstance(left, torch.Tensor) or not isinstance(right, torch.Tensor) or left.numel() != right.numel():
        return False
    if torch.strided != left.layout or torch.strided != right.layout or left.is_meta or right.is_meta:
        return False
    pair = [t.detach().reshape(-1).to("cpu", torch.float64) for t in (left, right)]
    return bool(torch.equal(*(torch.nan_to_num(t) for t in pair)))


FEWEST_ROWS = 8


def find_mispaired(
    columns: Sequence[torch.Tensor], view: Mapping[str, Any], labels: Any, record: StepRecord
) -> Mispaired | None:
    """Rows whose label belongs to another row of the batch; None if they are paired as there.

    Args:
        columns: of the batch that the loader gave.
        view: the batch as the model and the loss were given it.
    """
    given = [tensors.to_numpy(t) for t in columns if t.dim() and len(t) >= FEWEST_ROWS]
    if not isinstance(labels, torch.Tensor) or not labels.dim() or len(labels) < FEWEST_ROWS:
        return None
    targets = tensors.to_numpy(labels)
    if not any(_is_same(targets, one) for one in given):  # the labels are no longer those of the batch in its order
        return None
    values = [tensors.to_numpy(v) for v in view.values() if isinstance(v, torch.Tensor) and v is not labels]
    of_inputs = [order for one in values for order in _list_orders(one, given)]
    for found in (of_inputs, list(_list_orders_of_scores(record, targets))):
        if any(order == sorted(order) for order in found):  # rows of a batch are often paired with others on purpose
            continue
        for order in found:
            changed = targets.reshape(len(targets), -1)[order] != targets.reshape(len(targets), -1)
            if bool(changed.any()):
                return Mispaired(rows=len(targets), mispaired=int(changed.any(axis=1).sum()))
    return None


def _list_orders_of_scores(record: StepRecord, targets: np.ndarray) -> Iterator[list[int]]:
    """The orders in which losses with these targets get the rows of the model's output."""
    outputs = [tensors.to_numpy(t) for t in tensors.tensors_in([record.output]) if t.dim()]
    for kept in record.kept_losses:
        if _is_same(tensors.to_numpy(kept.targets), targets):
            yield from _list_orders(tensors.to_numpy(kept.scores), outputs)


def _is_same(left: np.ndarray, right: np.ndarray) -> bool:
    return left.size == right.size and len(left) == len(right) and bool((left.reshape(-1) == right.reshape(-1)).all())


def _list_orders(values: np.ndarray, given: Sequence[np.ndarray]) -> Iterator[list[int]]:
    """For each tensor of the batch whose rows are all different, the order in which the model gets its rows, if it does."""
    for one in given:
        if one.ndim < 2 or one.size != values.size or len(one) != len(values):
            continue
        places = {row.tobytes(): i for i, row in enumerate(one.reshape(len(one), -1).astype(values.dtype))}
        order = [places.get(row.tobytes(), -1) for row in np.ascontiguousarray(values.reshape(len(values), -1))]
        if len(places) == len(one) and sorted(order) == list(range(len(one))):
            yield order
