"""Whether a user's handwritten loss compares each output with the targets of all rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trainwright.adapters.keras.calls import as_tensors, first_array, is_own
from trainwright.adapters.keras.input.one_batch import FitBatch
from trainwright.adapters.keras.training import FitTraining
from trainwright.probes.losses import crosses_rows, is_of_all_pairs
from trainwright.seams.failures.blame import note_own, tolerated
from trainwright.seams.keras.loss import kind_of
from trainwright.seams.keras.step_record import StepRecord
from trainwright.stages.loss import CrossedTargets, PairedLoss
from trainwright.tensors.keras import objects as tensors

# Maximum number of rows to try in all pairs.
MOST_ROWS = 4


def crossed_targets(fit: FitTraining, record: StepRecord, batch: FitBatch) -> CrossedTargets | None:
    """The loss with the rows' targets permuted, with a vector reshaped to a column, and with both.

    None if one of Keras's losses was called, which aligns the two, or if the loss does not cross rows.
    """
    targets = batch.y
    by_hand = fit.own_step or is_own(fit.model, "compute_loss")
    if not by_hand or record.loss_calls or record.failure is not None or not isinstance(targets, np.ndarray):
        return None
    if targets.ndim == 0 or targets.size != len(targets) or targets.ndim > 2 or len(targets) < 2:
        return None
    aligned = targets[:, None] if targets.ndim == 1 else targets[:, 0]
    tried = (targets, np.flip(targets, 0).copy(), aligned, np.flip(aligned, 0).copy())
    with tolerated():  # a step that cannot be repeated tells nothing
        now, exchanged, in_shape, in_shape_exchanged = (fit.loss_of(replace(batch, y=y)) for y in tried)
        if crosses_rows(now, exchanged, in_shape, in_shape_exchanged):
            return CrossedTargets(
                shape=targets.shape,
                aligned_shape=aligned.shape,
                value=now,
                exchanged_value=exchanged,
                aligned_value=in_shape,
            )
    return None


def paired_loss(fit: FitTraining, record: StepRecord, batch: FitBatch) -> PairedLoss | None:
    """The values of the only loss given to compile on a few rows: together, in all pairs, and one by one.

    None if it is one of Keras's, if rows have several targets or outputs, or if it does not cross rows. The outputs are
    built from the targets of other rows, so that each pair of an output and a target has its own loss.
    """
    losses, y = tensors.losses_of(fit.model), batch.y
    output = first_array(record.output)
    if record.loss_calls or record.failure is not None or len(losses) != 1 or kind_of(losses[0]) is not None:
        return None
    if not isinstance(y, np.ndarray) or y.ndim == 0 or y.size != len(y) or output is None or output.size != len(y):
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
    except Exception as error:  # a loss that raises is reported with the step
        note_own(error)
        return None
    if not is_of_all_pairs(together, pairs):
        return None
    return PairedLoss(rows=len(y), value=together, by_row=float(pairs.diagonal().mean()))
