"""Some rows as the model receives them, with what it answers, to be shown one by one; for any framework."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.adapters.base import Received, ReceivedRows
from trainwright.adapters.learning.learner import Learner
from trainwright.timing import now

# Rows of a set that are looked at, of one batch, and the batches; a model's answers for more take long and tell no more.
MOST_ROWS, MOST_OF_BATCH, MOST_BATCHES = 256, 64, 16
# Their inputs together, in bytes.
MOST_BYTES = 64 * 2**20
# Names under which models take their labels.
_LABELS = ("labels", "label", "label_ids")


def receive_rows(
    learner: Learner, batches: Iterable[Any], *, is_held_out: bool, updates: int, seconds: float
) -> list[ReceivedRows]:
    """The rows of some batches, with the weights as they are now."""
    started, rows, size = now(), 0, 0
    found: list[ReceivedRows] = []
    for number, batch in enumerate(batches):
        count = len(learner.digests(batch) or ())
        if count > MOST_OF_BATCH:
            batch, count = learner.chosen_rows(batch, range(MOST_OF_BATCH)), MOST_OF_BATCH
        one = learner.received(batch) if count else None
        if one is not None and one.given:
            one = replace(one, given=_inputs(one, count))
            found.append(ReceivedRows(is_held_out=is_held_out, updates=updates, rows=count, batch=one))
            rows += count
            size += sum(values.nbytes for values in one.given.values())
        if rows >= MOST_ROWS or size >= MOST_BYTES or number + 1 >= MOST_BATCHES or now() - started > seconds:
            break
    return found


def receive_first(learner: Learner, seconds: float) -> list[ReceivedRows]:
    """The first rows of both sets, with the weights from which training starts; these are then restored."""
    training = learner.training
    found: list[ReceivedRows] = []
    training.reset()
    try:
        with training.ready(0):
            trained, held = learner.fresh(MOST_BATCHES, seconds / 4), learner.held_out(MOST_ROWS, seconds / 4)
            for batches, is_held_out in ((trained, False), (held, True)):
                found += receive_rows(learner, batches, is_held_out=is_held_out, updates=0, seconds=seconds / 4)
    finally:
        training.reset()
    return found


def _inputs(one: Received, rows: int) -> dict[str, NDArray[Any]]:
    """What the model is given, without its labels."""
    return {
        name: values
        for name, values in one.given.items()
        if name.split(".")[-1] not in _LABELS and not (one.losses and _is_target(values, one.losses[-1].targets, rows))
    }


def _is_target(values: NDArray[Any], targets: NDArray[Any], rows: int) -> bool:
    """Whether an input is what the loss compares with, one value a row: some models take both."""
    return values.size == targets.size == rows and bool(np.array_equal(values.reshape(-1), targets.reshape(-1)))
