"""Whether a loss that the user computes by hand compares each output with the targets of all rows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from trainwright.adapters.keras.calls import as_tensors, first_array, is_own
from trainwright.adapters.keras.input.fit_data import Batch
from trainwright.adapters.keras.state import seed_everything
from trainwright.adapters.keras.training import Twin
from trainwright.seams.failures.blame import note_own
from trainwright.seams.keras.loss import kind_of
from trainwright.seams.keras.watch import StepRecord
from trainwright.stages.loss import CrossedTargets, PairedLoss
from trainwright.tensors.keras import compiled
from trainwright.tensors.keras import objects as tensors

# So many rows are tried in all pairs.
MOST_ROWS = 4
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


def paired_loss(twin: Twin, record: StepRecord, batch: Batch) -> PairedLoss | None:
    """What the only loss given to compile makes of a few rows, together, in all pairs and one by one.

    None where it is one of Keras's, where rows have several targets or outputs, or where it does not cross rows.
    Outputs are made of the targets of other rows, so that each pair of an output and a target has a loss of its own.
    """
    losses, y = compiled.losses_of(twin.model), batch.y
    output = first_array(record.output)
    if record.loss_calls or record.failure is not None or len(losses) != 1 or kind_of(losses[0]) is not None:
        return None
    if (
        not isinstance(y, np.ndarray)
        or y.ndim == 0
        or y.size != len(y)
        or output is None
        or output.size != len(y)
    ):
        return None
    values, rows = np.unique(y.reshape(len(y)), return_index=True)
    if len(values) < 2 or y.dtype.kind not in "iuf":
        return None
    y = y[rows[:MOST_ROWS]]
    mixed = y.mean() + (np.roll(y, 1, axis=0) - y.mean()) / 2
    scores = mixed.astype(np.float32).reshape(len(y), *output.shape[1:])

    def loss(targets: np.ndarray, outputs: np.ndarray) -> float:
        return float(tensors.to_numpy(losses[0](as_tensors(targets), as_tensors(outputs))))

    try:
        together = loss(y, scores)
        pairs = np.array([[loss(t[None], o[None]) for t in y] for o in scores])
    except Exception as error:  # a loss that raises is measured as a step
        note_own(error)
        return None
    by_row = float(pairs.diagonal().mean())
    if not np.isfinite([together, *pairs.ravel()]).all() or _differ(together, by_row) <= _OTHER_WITHIN:
        return None
    if _differ(together, float(pairs.mean())) > _SAME_WITHIN:
        return None
    return PairedLoss(rows=len(y), value=together, by_row=by_row)


def _differ(one: float, other: float) -> float:
    return abs(one - other) / max(abs(one), abs(other), 1e-12)


def _loss(twin: Twin, batch: Batch) -> float | None:
    """The loss of a batch by one step from the weights at the start, with the same random numbers each time."""
    twin.reset()
    seed_everything(twin.model, 0)
    record = twin.step_gradients(batch, twin.observer(detail=False))
    return record.loss if record.failure is None else None
