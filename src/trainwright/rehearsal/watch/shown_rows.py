"""Offers the rows of a call to be shown one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.rehearsal.record import Answers, Integers, Kind
from trainwright.rehearsal.recorder import Recorder
from trainwright.rehearsal.sampling import Arrays, Offer, lengths_of
from trainwright.rehearsal.watch.reading import Meeting
from trainwright.rehearsal.watch.samples import plain
from trainwright.rehearsal.watch.state import Call


def offer_rows(recorder: Recorder, meeting: Meeting, answers: Answers, rows: Integers, per_row: int) -> None:
    """Offer the rows of the call that gave these answers, where their inputs are known."""
    call = meeting.call
    if recorder.sampler is None or call is None or not call.rows or int(rows.max()) >= call.rows:
        return
    source = call
    while source.root is not None:
        source = source.root
    if source.rows != call.rows or (source.model.takes_outputs and source.root is not None):
        return
    target = plain(meeting.target)
    storage = target.untyped_storage().data_ptr()  # a model may take its labels, too
    tensors = [one for one in _inputs(source) if one[1].untyped_storage().data_ptr() != storage]
    if not tensors:
        return
    has_many = answers.output.kind == Kind.CLASSES and per_row > 1 and target.numel() == call.rows * per_row
    if not has_many and (per_row > 1 or len(answers.labels) > call.rows):
        return

    def labels(row: int) -> NDArray[Any]:
        found: NDArray[Any] = target.reshape(call.rows, per_row)[row].cpu().numpy()
        return found

    recorder.offer(
        Offer(
            answers=answers,
            rows=rows,
            take=lambda row: _take(tensors, row),
            lengths=lengths_of(
                [(n, t.cpu().numpy()) for n, t in tensors if t.dim() == 2 and not t.is_floating_point()]
            ),
            labels=labels if has_many else None,
            ignored=meeting.ignored,
        )
    )


def _inputs(call: Call) -> list[tuple[str, Any]]:
    """The inputs of a call, named as in the loader's batch where they come from it."""
    columns = call.batch.columns if call.batch is not None else {}
    by_storage = {held.storage: name for name, held in columns.items()}
    found = [
        (by_storage.get(held.storage, name), held.get())
        for name, held in call.inputs
        if held.shape and held.shape[0] == call.rows
    ]
    return [(name, tensor) for name, tensor in found if tensor is not None and not tensor.dtype.is_complex]


def _take(tensors: list[tuple[str, Any]], row: int) -> Arrays:
    kept = []
    for name, tensor in tensors:
        values = tensor[row].detach()
        kept.append((name, np.array((values.float() if values.is_floating_point() else values).cpu().numpy())))
    return kept
