"""Whether a loss that a Keras model's class computes by hand compares each output with the targets of all rows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from trainwright.adapters.keras_calls import is_own
from trainwright.adapters.keras_data import Batch
from trainwright.adapters.keras_state import seed_everything
from trainwright.adapters.keras_twin import Twin
from trainwright.seams.keras import StepRecord
from trainwright.stages.loss import CrossedTargets

# A mean over the same pairs in another order differs by rounding alone.
_SAME_WITHIN = 1e-5
# Another shape that matters changes the loss of an untrained model by some hundredths at least.
_OTHER_WITHIN = 1e-3


def crossed_targets(twin: Twin, record: StepRecord, batch: Batch) -> CrossedTargets | None:
    """What the loss is with the targets of the rows exchanged, as a column for a vector, and with both.

    None where a loss of Keras's was called, which aligns the two, or the loss does not cross rows.
    """
    targets = batch.y
    by_hand = twin.own_step or is_own(twin.model, "compute_loss")
    if not by_hand or record.loss_calls or record.failure is not None or not isinstance(targets, np.ndarray):
        return None
    if targets.ndim == 0 or targets.size != len(targets) or targets.ndim > 2 or len(targets) < 2:
        return None
    aligned = targets[:, None] if targets.ndim == 1 else targets[:, 0]
    tried = (targets, np.flip(targets, 0).copy(), aligned, np.flip(aligned, 0).copy())
    losses = [_loss(twin, replace(batch, y=y)) for y in tried]
    if any(loss is None or not math.isfinite(loss) for loss in losses):
        return None
    now, exchanged, in_shape, in_shape_exchanged = (float(loss or 0.0) for loss in losses)
    alike = _differ(now, exchanged) <= _SAME_WITHIN
    if not alike or min(_differ(now, in_shape), _differ(in_shape, in_shape_exchanged)) <= _OTHER_WITHIN:
        return None
    return CrossedTargets(
        shape=targets.shape,
        aligned_shape=aligned.shape,
        value=now,
        exchanged_value=exchanged,
        aligned_value=in_shape,
    )


def _differ(one: float, other: float) -> float:
    return abs(one - other) / max(abs(one), abs(other), 1e-12)


def _loss(twin: Twin, batch: Batch) -> float | None:
    """The loss of a batch by one step from the weights at the start, with the same random numbers each time."""
    twin.reset()
    seed_everything(twin.model, 0)
    record = twin.step_gradients(batch, twin.observer(detail=False))
    return record.loss if record.failure is None else None
