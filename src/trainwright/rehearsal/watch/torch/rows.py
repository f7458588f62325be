"""The rows that a model receives: their keys and features, and which of them are offered to be shown."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.rehearsal.record import Answers, Floats, Integers, LabelKind
from trainwright.rehearsal.recorder import Recorder, spread
from trainwright.rehearsal.sampling import FEW, GOLDEN, Arrays, Offer, lengths_of, read_places
from trainwright.rehearsal.watch.labelled import row_inputs
from trainwright.rehearsal.watch.torch.reading import Meeting
from trainwright.rehearsal.watch.torch.samples import plain
from trainwright.rehearsal.watch.torch.state import OuterCall

# Values of a row that its key is made of.
OF_KEY = 4096


def read_rows(call: OuterCall) -> tuple[Integers | None, Floats | None]:
    """Keys and features of a call's rows, or of the rows of the call that gave its inputs; None where they are not known."""
    source = call.first
    if source.read is None:
        source.read = _read(source)
    if source is call or source.rows == call.rows:
        return source.read
    return None, None


def _read(call: OuterCall) -> tuple[Integers | None, Floats | None]:
    if call.model.takes_outputs:
        return None, None
    arrays = []
    for name, held in call.inputs:
        if not held.shape or held.shape[0] != call.rows or name in call.model.label_arguments:
            continue
        tensor = held.get()
        if tensor is None:
            return None, None
        if tensor.dtype.is_complex:
            continue
        flat = tensor.reshape(call.rows, -1)
        if flat.shape[1] > OF_KEY:
            flat = flat[:, spread(flat.shape[1], OF_KEY).tolist()]
        arrays.append((name, (flat.float() if flat.is_floating_point() else flat.long()).cpu().numpy()))
    if not arrays:
        return None, None
    return _keys(arrays), _features([array for _, array in arrays])


def _keys(inputs: Arrays) -> Integers:
    """Exact: of the bits of the values. Zeros at a row's end add nothing, as rows are padded to different lengths."""
    ids = next((a for _, a in inputs if a.dtype.kind == "i" and a.size and a.max() > 1), None)
    read = read_places(ids, inputs) if ids is not None else None
    total = np.zeros(len(inputs[0][1]), np.uint64)
    for number, (_, array) in enumerate(inputs):
        bits = array.view(np.uint32).astype(np.uint64) if array.dtype == np.float32 else array.astype(np.uint64)
        if read is not None and array.dtype.kind == "i" and array.shape == read.shape:
            bits = bits * read
        order = np.arange(1, bits.shape[1] + 1, dtype=np.uint64) * np.uint64(2) + np.uint64(2 * number * OF_KEY + 1)
        factors = order * np.uint64(GOLDEN)
        factors ^= factors >> np.uint64(29)
        total += ((bits ^ (bits >> np.uint64(15))) * (factors | np.uint64(1))).sum(1, dtype=np.uint64)
    keys: Integers = total.view(np.int64)
    return keys


def _features(arrays: list[NDArray[Any]]) -> Floats | None:
    chosen = []
    for array in arrays:
        is_table = array.dtype.kind == "f" or array.shape[1] <= FEW
        holds_tokens = not is_table and array.min() >= 0 and array.max() > 1
        is_mask = not (is_table or holds_tokens) and any(a.shape == array.shape and a is not array for a in arrays)
        if not is_mask:  # but answers of yes and no
            chosen.append((array, holds_tokens))
    return row_inputs(chosen)


def offer_rows(recorder: Recorder, meeting: Meeting, answers: Answers, rows: Integers, per_row: int) -> None:
    """Offer the rows of the call that gave these answers, where their inputs are known."""
    call = meeting.call
    if recorder.sampler is None or call is None or not call.rows or int(rows.max()) >= call.rows:
        return
    source = call.first
    if source.rows != call.rows:
        return
    target = plain(meeting.target)
    storage = target.untyped_storage().data_ptr()  # a model may take its labels, too
    tensors = [one for one in _inputs(source) if one[1].untyped_storage().data_ptr() != storage]
    if not tensors:
        return
    has_many = answers.output.kind == LabelKind.CLASSES and per_row > 1 and target.numel() == call.rows * per_row
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


def _inputs(call: OuterCall) -> list[tuple[str, Any]]:
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
