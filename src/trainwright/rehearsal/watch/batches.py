"""Which batch of a loader a model was given."""

from __future__ import annotations

import torch

from trainwright.rehearsal.watch.state import Batch, Call, State


def find_batch(state: State, call: Call) -> Batch | None:
    """The batch that holds the very inputs of a call, or inputs of the same shape: the newest of a reading that goes on, or
    else the newest."""
    storages = {h.storage for _, h in call.inputs}
    for batch in reversed(state.batches):
        if batch.holds(storages):
            return batch
    shapes = {h.shape for _, h in call.inputs if h.shape and h.shape[0] == call.rows}
    alike = [b for b in reversed(state.batches) if any(h.shape in shapes for h in b.columns.values())]
    return next((b for b in alike if b.is_under_way), alike[0] if alike else None)


def batch_with(state: State, call: Call) -> Batch | None:
    """The batch whose rows the call received for sure: the same memory, or the same values; None: not known."""
    while call.root is not None:
        call = call.root
    storages = {h.storage for _, h in call.inputs}
    candidates = [*([call.batch] if call.batch is not None else []), *reversed(state.batches)]
    for batch in candidates:
        if batch.holds(storages):
            return batch
    for batch in candidates:
        for column in batch.columns.values():
            values = column.get()
            for _, held in call.inputs:
                if held.shape != column.shape or values is None or not held.shape:
                    continue
                given = held.get()
                if given is not None and given.dtype == values.dtype and torch.equal(given.cpu(), values.cpu()):
                    return batch
    # Rows that were changed on the way (scaled, moved) keep their order where the loader is not ahead.
    return call.batch if not state.reads_ahead else None
