"""Probes of a torch model's forward pass: what other rows, other inputs and other weights change."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn

from trainwright.adapters.torch.called_model import (
    LEAKS_BEYOND,
    SAME_WITHIN,
    Probe,
    is_out_of_memory,
    rows_of,
    take_rows,
)
from trainwright.adapters.torch.token_probes import future_leak, padding_let_in, unmasked_padding
from trainwright.seams.failures.blame import failure_of, note_own, tolerated
from trainwright.seams.torch.evaluation import tensors_in
from trainwright.seams.torch.trace import Trace, difference, first_difference, last_difference
from trainwright.seams.torch.watch import scores_of

# Each weight is moved by this share of its tensor's scale, and by as much in absolute terms where it is zero.
PERTURBED_BY = 0.05
# More rows than this many times the batch are not tried.
MOST_ROWS_FACTOR = 4
# Numbers of rows that are tried when the first batch fails.
USUAL_ROWS = (1, 2, 4, 16, 32, 64, 128)
# Tokenizers add these to every batch, wanted or not: whether they have an effect says nothing of the script.
_FROM_TOKENIZER = ("attention_mask", "token_type_ids", "special_tokens_mask")


def run_probes(probe: Probe) -> dict[str, Any]:
    """Facts of the forward pass that need further calls of the model; a probe that cannot be made is left out."""
    found: dict[str, Any] = {}
    if any(isinstance(v, torch.Tensor) and v.layout != torch.strided for v in probe.inputs.values()):
        return found  # a graph's sparse matrix has no rows to exchange
    try:
        base = probe.scores(probe.inputs)
    except (
        Exception
    ) as error:  # evaluation mode fails where training mode did not: the evaluation stage will show it
        note_own(error)
        return found
    found |= _other_rows(probe)
    if base is None or not bool(torch.isfinite(base).all()):
        return found
    rows = rows_of(probe.inputs)
    for measure in (
        _other_inputs,
        _ignored_inputs,
        _leaking_rows,
        future_leak,
        unmasked_padding,
        padding_let_in,
    ):
        with contextlib.suppress(
            Exception
        ):  # a probe's own inputs may not suit the model: then it says nothing
            found |= measure(probe, base, rows)
    return found


def rows_that_work(probe: Probe) -> int | None:
    """Another number of rows with which the model can be called, where the batch's own fails again."""
    rows = rows_of(probe.inputs)
    with tolerated():  # whether it raises again is the question
        probe.call(probe.inputs, training=True)
        return None
    for count in USUAL_ROWS:
        if count == rows or not rows:
            continue
        with tolerated():  # the number is tried to see whether it raises
            probe.call(take_rows(probe.inputs, [i % rows for i in range(count)]), training=count > 1)
            return count
    return None


def _other_rows(probe: Probe) -> dict[str, Any]:
    """The first number of rows still to come with which the model cannot be called."""
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


def _other_inputs(probe: Probe, base: torch.Tensor, rows: int) -> dict[str, Any]:
    if probe.other is None or not _inputs_differ(probe):
        return {}
    other = probe.scores(probe.other)
    if other is None or other.shape[1:] != base.shape[1:]:
        return {}
    count = min(len(base), len(other))
    if difference(base[:count], other[:count]) >= SAME_WITHIN or _differ_in_training(probe, count):
        return {"same_for_other_inputs": False}
    found: dict[str, Any] = {"same_for_other_inputs": True}
    with _perturbed(probe.model):
        left, right = probe.scores(probe.inputs), probe.scores(probe.other)
        if left is None or right is None:
            return found
        found["same_when_perturbed"] = difference(left[:count], right[:count]) < SAME_WITHIN
        if found["same_when_perturbed"]:
            traces = [
                probe.trace(take_rows(i, range(count)), lambda t: t) for i in (probe.inputs, probe.other)
            ]
            found["constant_from"] = last_difference(*traces)
    return found


def _differ_in_training(probe: Probe, count: int) -> bool:
    """Whether the outputs differ in training: batch statistics that nothing has gathered leave a raw scale as it is."""
    found = [scores_of(probe.call(inputs, training=True)) for inputs in (probe.inputs, probe.other or {})]
    left, right = (t[:count].float() if t is not None else None for t in found)
    return left is not None and right is not None and difference(left, right) >= SAME_WITHIN


def _inputs_differ(probe: Probe) -> bool:
    """Whether the two batches hold something other than their labels that differs."""
    for key, value in probe.inputs.items():
        other = (probe.other or {}).get(key)
        if (
            key in probe.label_keys
            or not isinstance(value, torch.Tensor)
            or not isinstance(other, torch.Tensor)
        ):
            continue
        count = min(len(value), len(other)) if value.dim() and other.dim() else 0
        if count and (value.shape[1:] != other.shape[1:] or not torch.equal(value[:count], other[:count])):
            return True
    return False


@contextlib.contextmanager
def _perturbed(model: nn.Module) -> Iterator[None]:
    """Every weight moved a little, and put back."""
    kept = [(p, p.detach().clone()) for p in model.parameters()]
    source = torch.Generator().manual_seed(1)
    try:
        with torch.no_grad():
            for parameter, value in kept:
                if parameter.is_floating_point():
                    noise = torch.randn(value.shape, generator=source).to(value)
                    parameter.add_(noise * PERTURBED_BY * (value.abs().mean() or 1.0))
        yield
    finally:
        with torch.no_grad():
            for parameter, value in kept:
                parameter.copy_(value)


def _ignored_inputs(probe: Probe, base: torch.Tensor, rows: int) -> dict[str, Any]:
    keys = [
        k
        for k, v in probe.inputs.items()
        if k not in probe.label_keys and isinstance(v, torch.Tensor) and v.dim() and len(v) == rows
    ]
    if rows < 2 or len(keys) < 2:  # one input alone is constant-output's matter
        return {}
    keys = [k for k in keys if k not in _FROM_TOKENIZER]
    ignored = _without_effect(probe, keys)
    if ignored:  # a branch whose last layer starts at zero is no ignored one
        with _perturbed(probe.model):
            ignored = _without_effect(probe, ignored)
    return {"ignored_inputs": tuple(ignored)}


def _without_effect(probe: Probe, keys: Sequence[str]) -> list[str]:
    """The inputs that differ between rows and whose exchange between rows changes nothing."""
    turned = {k: probe.inputs[k].roll(1, 0) for k in keys}
    varied = [k for k in keys if not torch.equal(turned[k], probe.inputs[k])]
    before = probe.call(probe.inputs) if varied else None
    return [k for k in varied if _same(before, probe.call({**probe.inputs, k: turned[k]}))]


def _same(left: Any, right: Any) -> bool:
    """Whether two answers have the same tensors: scores, the loss where there is one, and whatever else is answered."""
    pairs = list(zip(tensors_in(left), tensors_in(right)))
    return bool(pairs) and all(a.shape == b.shape and difference(a, b) < SAME_WITHIN for a, b in pairs)


def _leaking_rows(probe: Probe, base: torch.Tensor, rows: int) -> dict[str, Any]:
    if rows < 2 or len(base) != rows or rows in base.shape[1:2]:  # (N, N) scores compare rows on purpose
        return {}
    if _relates_rows(probe, rows):
        return {}
    found: dict[str, Any] = {"leaking_rows": 0.0}
    # Where a loader's rows are taken for steps of time, the first depends on none and the last on all. Without a loader the
    # first axis may be that of time.
    for row in (0, rows - 1) if probe.batch_size == rows else (0,):
        alone = take_rows(probe.inputs, [row] * rows)
        changed = probe.scores(alone)
        if changed is None:
            return {}
        leak = _row_difference(base, changed, row)
        if leak > found["leaking_rows"]:
            found = {"leaking_rows": leak, "leaking_row": row}
        if leak > LEAKS_BEYOND:
            traces = [
                probe.trace(i, functools.partial(_row, rows=rows, row=row)) for i in (probe.inputs, alone)
            ]
            return found | {"leak_from": first_difference(*traces)}
    return found


def _row_difference(base: torch.Tensor, changed: torch.Tensor, row: int) -> float:
    """By how much of its scale one row of the scores changes."""
    if base[row].numel() > 1:
        return difference(base[row], changed[row])
    scale = base.abs().mean() + base.std(correction=0) + 1e-12
    return float((base[row] - changed[row]).abs().max() / scale)


def _relates_rows(probe: Probe, rows: int) -> bool:
    """Whether the rows are the nodes of a graph: the model is given, or holds, a number for each pair of them, or edges."""
    held = [v for m in probe.model.modules() for v in (*vars(m).values(), *m._buffers.values())]
    given = [v for v in probe.inputs.values() if isinstance(v, torch.Tensor)]
    tensors = [*given, *(v for v in held if isinstance(v, torch.Tensor))]
    if any(_are_edges(t, rows) for t in tensors):
        return True
    square = [t for t in tensors if tuple(t.shape) == (rows, rows)]
    # As many features as there are rows make a square as well: of those, half the rows can be taken.
    return bool(square) and not (all(any(t is g for g in given) for t in square) and _takes_half(probe, rows))


def _are_edges(tensor: torch.Tensor, rows: int) -> bool:
    two = tensor.dim() == 2 and len(tensor) == 2 and not tensor.is_floating_point()
    return two and tensor.shape[1] > 2 and int(tensor.max()) < rows


def _takes_half(probe: Probe, rows: int) -> bool:
    with tolerated():  # whether it raises is the question
        probe.call(take_rows(probe.inputs, range(max(1, rows // 2))))
        return True
    return False


def _row(result: torch.Tensor, rows: int, row: int) -> torch.Tensor | None:
    """One row, of results with the batch on their first or second axis."""
    if len(result) == rows:
        return result[row]
    return result[:, row] if result.dim() > 1 and result.shape[1] == rows else None
