"""Whether a step keeps the rows of a batch together: the model's inputs, and its outputs, in the order of the labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from trainwright.seams.torch.marks import tensors_in
from trainwright.seams.torch.step_record import StepRecord
from trainwright.stages.rows import Mispaired
from trainwright.tensors.torch import objects as tensors

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
    outputs = [tensors.to_numpy(t) for t in tensors_in([record.output]) if t.dim()]
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
