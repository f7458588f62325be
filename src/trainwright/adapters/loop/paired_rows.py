"""Whether the loop's body keeps the rows of a batch together: the model's inputs, and its outputs, in the order of the labels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from trainwright.adapters.loop.training import LoopTraining
from trainwright.adapters.loop.turn import Turn
from trainwright.seams.torch.trace import tensors_in
from trainwright.stages.rows import Mispaired
from trainwright.tensors.torch import objects as tensors

FEWEST_ROWS = 8


def mispaired_rows(training: LoopTraining, turn: Turn) -> Mispaired | None:
    """Rows whose label belongs to another row of the batch that the loop was given; None if they are paired as there."""
    view, labels = training.view(turn), training.label_of(turn)
    item = turn.item if turn.item is not None else training.items[turn.number % len(training.items)]
    given = [tensors.to_numpy(t) for t in tensors_in([item]) if t.dim() and len(t) >= FEWEST_ROWS]
    if not isinstance(labels, torch.Tensor) or not labels.dim() or len(labels) < FEWEST_ROWS:
        return None
    targets = tensors.to_numpy(labels)
    if not any(_same(targets, one) for one in given):  # the labels are no longer those of the batch in its order
        return None
    values = [tensors.to_numpy(v) for v in view.values() if isinstance(v, torch.Tensor) and v is not labels]
    orders = [order for one in values for order in _orders(one, given)]
    for found in (orders, list(_orders_of_scores(training, turn, targets))):
        if any(order == sorted(order) for order in found):  # rows of a batch are often paired with others on purpose
            continue
        for order in found:
            changed = targets.reshape(len(targets), -1)[order] != targets.reshape(len(targets), -1)
            if bool(changed.any()):
                return Mispaired(rows=len(targets), mispaired=int(changed.any(axis=1).sum()))
    return None


def _orders_of_scores(training: LoopTraining, turn: Turn, targets: np.ndarray) -> Iterator[list[int]]:
    """The orders in which losses with these targets get the rows of the model's output."""
    training.reset()
    with training.ready(0):
        record, _ = training.observe(turn, detail=True, until_backward=True)
    training.reset()
    outputs = [tensors.to_numpy(t) for t in tensors_in([record.output]) if t.dim()]
    for kept in record.kept_losses:
        if _same(tensors.to_numpy(kept.targets), targets):
            yield from _orders(tensors.to_numpy(kept.scores), outputs)


def _same(left: np.ndarray, right: np.ndarray) -> bool:
    return left.size == right.size and len(left) == len(right) and bool((left.reshape(-1) == right.reshape(-1)).all())


def _orders(values: np.ndarray, given: list[np.ndarray]) -> Iterator[list[int]]:
    """For each tensor of the batch whose rows are all different, the order in which the model gets its rows, if it does."""
    for one in given:
        if one.ndim < 2 or one.size != values.size or len(one) != len(values):
            continue
        places = {row.tobytes(): i for i, row in enumerate(one.reshape(len(one), -1).astype(values.dtype))}
        order = [places.get(row.tobytes(), -1) for row in np.ascontiguousarray(values.reshape(len(values), -1))]
        if len(places) == len(one) and sorted(order) == list(range(len(one))):
            yield order
