"""Probes of a torch model's forward pass: the effect of other rows, other inputs and other weights."""

from __future__ import annotations

import ast
import functools
import sys
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from trainwright.adapters.torch.called_model import CalledModel, rows_of, take_rows
from trainwright.adapters.torch.token_probes import future_leak, padding_let_in, unmasked_padding
from trainwright.core import Place
from trainwright.probes.forward import (
    LEAKS_BEYOND,
    ignored_inputs,
    is_affine,
    leaking_rows,
    placed_rows,
    same_for_other_inputs,
)
from trainwright.seams.devices.memory_owners import is_out_of_memory
from trainwright.seams.failures.blame import failure_of, note_own, tolerated
from trainwright.seams.source.places import user_place
from trainwright.seams.source.written import call_node
from trainwright.seams.torch.layers import active_noise
from trainwright.seams.torch.trace import Trace, first_difference, last_difference
from trainwright.stages import ForwardFacts
from trainwright.tensors.torch import objects as tensors
from trainwright.timing import now

# With a slow model, probes that would begin after this time are left out.
SECONDS = 15.0
# Do not try more rows than this many times the batch.
MOST_ROWS_FACTOR = 4
# Batch sizes to try if the first batch fails.
USUAL_ROWS = (1, 2, 4, 16, 32, 64, 128)
# Tokenizers add these to every batch anyway, so their lack of effect says nothing about the script.
_FROM_TOKENIZER = ("attention_mask", "token_type_ids", "special_tokens_mask")


def run_probes(probe: CalledModel) -> dict[str, Any]:
    """Facts of the forward pass that need further calls of the model; impossible probes are left out."""
    found: dict[str, Any] = {}
    if any(isinstance(v, torch.Tensor) and v.layout != torch.strided for v in probe.inputs.values()):
        return found  # a graph's sparse matrix has no rows to permute
    try:
        base = probe.answer(probe.inputs)
    except Exception as error:  # evaluation mode fails where training mode did not; the evaluation stage reports it
        note_own(error)
        return found
    found |= _other_rows(probe)
    if base is None or not np.isfinite(base).all():
        return found
    rows, started = rows_of(probe.inputs), now()
    for measure in (
        answer_other_inputs,
        _ignored_inputs,
        _affine,
        _leaking_rows,
        _placed_rows,
        future_leak,
        unmasked_padding,
        padding_let_in,
    ):
        if now() - started > SECONDS:
            break
        with tolerated():  # a probe's inputs may not suit the model; then it tells nothing
            found |= measure(probe, base, rows)
    return found


def probe_last_weights(probe: CalledModel) -> ForwardFacts | None:
    """What of the other rows and of the inputs reaches the answers, with the weights that the run ends with; None: it has none."""
    base = probe.answer(probe.inputs)
    if base is None or not np.isfinite(base).all():
        return None
    rows = rows_of(probe.inputs)
    found = {**_leaking_rows(probe, base, rows), **_ignored_inputs(probe, base, rows)}
    tokens = [v.shape[1] for v in probe.inputs.values() if v.dim() == 2 and not v.is_floating_point()]
    ignored = [n for n in found.get("ignored_inputs", ()) if not _are_lengths(probe.inputs[n], tokens)]
    found["ignored_inputs"] = tuple(ignored)
    if not set(probe.inputs) - {*found.get("ignored_inputs", ()), *_FROM_TOKENIZER, *probe.label_keys}:
        found.pop("ignored_inputs", None)  # it is not these that the model answers by
    return ForwardFacts(output=tensors.facts(torch.as_tensor(base)), has_last_weights=True, **found)


def _are_lengths(tensor: torch.Tensor, widths: list[int]) -> bool:
    """Whether a number of each row may be the length of its tokens: a model that pads need not look at it."""
    return tensor.dim() == 1 and not tensor.is_floating_point() and any(int(tensor.max()) <= width for width in widths)


class NoiseWatch(TorchFunctionMode):
    """The operations of training that are active in calls of a model, and the user's lines that run them."""

    def __init__(self) -> None:
        super().__init__()
        self.active: dict[tuple[str, Place | None], None] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        operation = active_noise(func, args, kwargs or {})
        if operation is not None:
            where = user_place(sys._getframe(1))
            if where is not None and not _is_switched(where, getattr(func, "__name__", "")):
                self.active[operation, where] = None
        return func(*args, **(kwargs or {}))


def _is_switched(where: Place, function: str) -> bool:
    """Whether the call's own arguments may turn it off: a flag of the script's may be on now, and have been off before."""
    call = call_node(where.file, where.line, function)
    if call is None:
        return True
    switches = [k.value for k in call.keywords if k.arg in (None, "training")]
    # The share is one, if it is computed: `0.1 if training else 0`.
    shares = [
        k.value for k in call.keywords if k.arg == "dropout_p" and not isinstance(k.value, (ast.Name, ast.Attribute))
    ]
    by_place = call.args[2:3] if "dropout" in function and not shares else []
    return any(not isinstance(one, ast.Constant) for one in (*switches, *shares, *by_place))


def rows_that_work(probe: CalledModel) -> int | None:
    """Another batch size with which the model works, if the batch's own fails again, and fails with the rows of that one, too."""
    rows = rows_of(probe.inputs)
    with tolerated():  # whether it raises again is the question
        probe.call(probe.inputs, training=True)
        return None
    for count in USUAL_ROWS:
        if count == rows or not rows:
            continue
        with tolerated():  # the number is tried to see whether it raises
            probe.call(take_rows(probe.inputs, [i % rows for i in range(count)]), training=count > 1)
            with tolerated():
                probe.call(take_rows(probe.inputs, [i % min(count, rows) for i in range(rows)]), training=True)
                return None  # another row than these is at fault, whatever their number
            return count
    return None


def _other_rows(probe: CalledModel) -> dict[str, Any]:
    """The first of the coming batch sizes with which the model fails."""
    rows = rows_of(probe.inputs)
    for name, (count, training) in probe.met_rows.items():
        if not rows or count in (0, rows) or count > MOST_ROWS_FACTOR * rows:
            continue
        inputs = take_rows(probe.inputs, [i % rows for i in range(count)])
        trace = Trace(lambda result: None)
        try:
            with trace:
                probe.call(inputs, training=training)
        except Exception as error:
            if is_out_of_memory(error):
                continue
            failure = failure_of(error)
            fixed = [m.where for m in trace.made if m.rows == rows and rows not in m.given_rows and m.where]
            return {
                "fails_at_rows": count,
                "other_rows_failure": failure,
                "other_rows_from": name,
                "fixed_at": fixed[0] if fixed else failure.where,
            }
    return {}


def answer_other_inputs(probe: CalledModel, base: np.ndarray, rows: int) -> dict[str, Any]:
    if probe.other is None or not _inputs_differ(probe):
        return {}
    found: dict[str, Any] = {**same_for_other_inputs(probe, base, probe.inputs, probe.other)}
    if found.get("same_when_perturbed"):
        count = min(rows, rows_of(probe.other))
        both = [take_rows(i, range(count)) for i in (probe.inputs, probe.other)]
        with probe.moved_weights():
            found["constant_from"] = last_difference(*(probe.trace(i, lambda t: t) for i in both))
    return found


def _inputs_differ(probe: CalledModel) -> bool:
    """Whether the two batches differ in something other than their labels."""
    for key, value in probe.inputs.items():
        other = (probe.other or {}).get(key)
        if key in probe.label_keys or not isinstance(value, torch.Tensor) or not isinstance(other, torch.Tensor):
            continue
        count = min(len(value), len(other)) if value.dim() and other.dim() else 0
        if count and (value.shape[1:] != other.shape[1:] or not torch.equal(value[:count], other[:count])):
            return True
    return False


def _ignored_inputs(probe: CalledModel, base: np.ndarray, rows: int) -> dict[str, Any]:
    keys = [
        k
        for k, v in probe.inputs.items()
        if k not in probe.label_keys and isinstance(v, torch.Tensor) and v.dim() and len(v) == rows
    ]
    if rows < 2 or len(keys) < 2:  # constant-output covers a single input
        return {}
    names = [k for k in keys if k not in _FROM_TOKENIZER]
    return {"ignored_inputs": ignored_inputs(probe, probe.inputs, names)}


def _affine(probe: CalledModel, base: np.ndarray, rows: int) -> dict[str, Any]:
    return {"affine": is_affine(probe, probe.inputs)}


def _leaking_rows(probe: CalledModel, base: np.ndarray, rows: int) -> dict[str, Any]:
    if rows < 2 or len(base) != rows or _relates_rows(probe, rows):
        return {}
    # If a loader's rows were mistaken for time steps, the first row would depend on none and the last on all. Without a
    # loader, the first axis may be time.
    found = leaking_rows(probe, base, probe.inputs, (0, rows - 1) if probe.batch_size == rows else (0,))
    if found is None:
        return {}
    leak, row = found
    if row is None or leak <= LEAKS_BEYOND:
        return {"leaking_rows": leak, "leaking_row": row} if row is not None else {"leaking_rows": leak}
    alone = take_rows(probe.inputs, [row] * rows)
    traces = [probe.trace(i, functools.partial(_row, rows=rows, row=row)) for i in (probe.inputs, alone)]
    return {"leaking_rows": leak, "leaking_row": row, "leak_from": first_difference(*traces)}


def _placed_rows(probe: CalledModel, base: np.ndarray, rows: int) -> dict[str, Any]:
    """How much the outputs of equal rows differ, where nothing that is random makes them differ."""
    if probe.batch_size != rows or len(base) != rows or _relates_rows(probe, rows):
        return {}  # without a loader, the first axis may be time
    change = placed_rows(probe, base, probe.inputs)
    if change is None or change <= LEAKS_BEYOND:
        return {"placed_rows": change}
    equal = take_rows(probe.inputs, [0] * rows)
    traces = [probe.trace(equal, functools.partial(_row, rows=rows, row=row)) for row in (0, rows - 1)]
    return {"placed_rows": change, "placed_from": first_difference(*traces)}


def _relates_rows(probe: CalledModel, rows: int) -> bool:
    """Whether the rows are a graph's nodes: the model gets, or holds, a number for each pair of them, or edges."""
    held = [v for m in probe.model.modules() for v in (*vars(m).values(), *m._buffers.values())]
    given = [v for v in probe.inputs.values() if isinstance(v, torch.Tensor)]
    tensors = [*given, *(v for v in held if isinstance(v, torch.Tensor))]
    if any(_are_edges(t, rows) for t in tensors):
        return True
    square = [t for t in tensors if tuple(t.shape) == (rows, rows)]
    # As many features as rows also form a square; with such inputs, half of the rows can be used.
    return bool(square) and not (all(any(t is g for g in given) for t in square) and _takes_half(probe, rows))


def _are_edges(tensor: torch.Tensor, rows: int) -> bool:
    two = tensor.dim() == 2 and len(tensor) == 2 and not tensor.is_floating_point()
    return two and tensor.shape[1] > 2 and int(tensor.max()) < rows


def _takes_half(probe: CalledModel, rows: int) -> bool:
    with tolerated():  # whether it raises is the question
        probe.call(take_rows(probe.inputs, range(max(1, rows // 2))))
        return True
    return False


def _row(result: torch.Tensor, rows: int, row: int) -> torch.Tensor | None:
    """One row of results whose batch axis is the first or second."""
    if len(result) == rows:
        return result[row]
    return result[:, row] if result.dim() > 1 and result.shape[1] == rows else None
