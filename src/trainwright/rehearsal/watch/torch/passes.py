"""Calls of models from outside, and evaluation passes: which weights answered, over which batch and set, in which mode."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

from trainwright.rehearsal.record import Pass
from trainwright.rehearsal.watch.torch.close_look import CloseLook
from trainwright.rehearsal.watch.torch.samples import named_tensors
from trainwright.rehearsal.watch.torch.state import (
    HeldTensor,
    LoaderBatch,
    OuterCall,
    WatchState,
    storage_of,
    weights_fingerprint,
)
from trainwright.seams.listening.doors import watch_door
from trainwright.seams.source.places import nearest_place

# Is given a call, its arguments and its tensors.
AfterCall = Callable[[OuterCall, Any, Any, list[tuple[str, Any]]], None]
# Passes that are kept.
MOST_PASSES = 20_000


def watch_calls(
    state: WatchState, close: CloseLook, look_for_update: Callable[[], None], after_call: AfterCall
) -> None:
    """Look at each call of a model from outside.

    Args:
        look_for_update: called before a model answers: an update may have been made by hand.
        after_call: called when it has answered.
    """
    begin = state.recorder.watching(functools.partial(begin_call, state))
    end = state.recorder.watching(functools.partial(end_call, state, after_call))
    is_passed_over = state.recorder.watching(state.is_passed_over)

    def passed_on(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or state.depth or state.in_backward or state.is_off():
            result = go_on(self, *args, **kwargs)
            if state.in_gradient is not None:  # the outermost is the last to answer
                state.module = self
            return result
        look_for_update()
        close.begin_outermost(self, args, kwargs)
        result = None
        try:
            is_over = bool(is_passed_over(self, args))
            call = None if is_over else begin(self, args, kwargs)
            if is_over or call is not None:
                state.depth, state.current, state.has_passed = 1, call, is_over
            try:
                result = go_on(self, *args, **kwargs)
            finally:
                state.depth, state.current = 0, None
            if call is not None:
                end(call, result, args, kwargs)
        finally:
            close.end_outermost(args, kwargs, result)
        return result

    watch_door(torch.nn.Module, "__call__", passed_on)


def begin_call(state: WatchState, module: Any, args: Any, kwargs: Any) -> OuterCall | None:
    """What is known of a call before the model answers; None where it is no model."""
    model = state.model_of(module)
    if not model.has_parameters:
        return None
    model.calls += 1
    tensors = named_tensors(args, kwargs)
    rows = next((int(t.shape[0]) for _, t in tensors if t.dim()), 0)
    held = [(name, HeldTensor.of(t)) for name, t in tensors]
    call = OuterCall(model, state.update, module.training, model.is_noisy, rows, held)
    call.root = _root(state, call, tensors)
    model.takes_outputs = model.takes_outputs or call.root is not None
    call.batch = call.root.batch if call.root is not None else _find_batch(state, call)
    batch = call.batch
    labels = {held.storage for name, held in batch.columns.items() if "label" in name} if batch is not None else ()
    model.label_arguments |= {name for name, held in call.inputs if held.storage in labels}
    if batch is not None and batch.of is not None and batch.drawn is not None and batch.is_under_way:
        batch.of.meet(batch.drawn, trains=torch.is_grad_enabled())
    if not torch.is_grad_enabled():
        call.where = nearest_place(sys._getframe(1))
        pass_of(state, call)
    return call


def _root(state: WatchState, call: OuterCall, tensors: list[tuple[str, Any]]) -> OuterCall | None:
    """The call whose answers this one was given."""
    storages = {h.storage for _, h in call.inputs}
    for earlier in reversed(state.recent):
        if earlier.update != call.update:
            break
        if earlier.rows == call.rows and any(h.storage in storages for _, h in earlier.outputs):
            return earlier
    if state.recent and any(t.grad_fn is not None for _, t in tensors):
        last = state.recent[-1]
        return last if last.rows == call.rows and last.grads and last.update == call.update else None
    return None


def end_call(state: WatchState, after_call: AfterCall, call: OuterCall, result: Any, args: Any, kwargs: Any) -> None:
    """Note what the model answered."""
    results = named_tensors((result,), {})
    call.outputs = [(name, HeldTensor.of(t)) for name, t in results if t.dim() or len(results) == 1]
    is_one_row = all(len(h.shape) < 2 for _, h in call.inputs) and any(h.shape for _, h in call.outputs)
    if is_one_row and all(h.shape[:1] != (call.rows,) for _, h in call.outputs):
        call.rows = 0  # its input has no dimension of rows
    nodes = [t.grad_fn for _, t in results if t.grad_fn is not None]
    call.grads = bool(nodes) and torch.is_grad_enabled()
    call.nodes = tuple(n._sequence_nr() for n in nodes) if call.grads else ()
    if not call.grads and call.made is None and not torch.is_grad_enabled():
        pass_of(state, call)
    state.remember(call)
    after_call(call, args, kwargs, results)


def pass_of(state: WatchState, call: OuterCall, labelled: bool = False) -> Pass | None:
    """The evaluation pass that a call belongs to. Of many passes that nobody scores, as in reinforcement learning, few are
    kept."""
    model, module = call.model, call.model.ref()
    if call.made is not None or module is None:
        return call.made
    reading = call.batch.reading if call.batch is not None else 0
    if model.open is not None and model.open[:2] == (call.update, reading):
        call.made = model.open[2]
    else:
        model.passes += 1
        call.made = None
    if call.made is None:
        fresh = model.open is None or model.open[:2] != (call.update, reading)
        read = call.batch is not None and call.batch.drawn is not None and not call.batch.drawn.trains
        if labelled or (fresh and (read or state.recorder.is_due(model.passes))):
            call.made = _begin(state, call, module)
        if fresh == (call.made is None) and (call.batch is None or read):
            model.count_unkept(call.update, 1 if fresh else -1)
        model.open = call.update, reading, call.made
    if call.made is not None:
        call.made.calls += 1
        call.made.noisy_calls += call.is_noisy
    return call.made


def _begin(state: WatchState, call: OuterCall, module: Any) -> Pass | None:
    if len(state.recorder.record.passes) >= MOST_PASSES:
        return None
    drawn = call.batch.drawn if call.batch is not None else None
    made = Pass(
        number=0,
        update=call.update,
        model=call.model.number,
        is_trained=call.model.is_trained,
        weights=weights_fingerprint(module),
        data=drawn.data if drawn is not None else 0,
        where=call.where or nearest_place(sys._getframe(1)),
    )
    begun = state.recorder.begin_pass(made, anew=True)
    if call.batch is not None and call.batch.of is not None:
        state.read_by[begun.number] = call.batch.of
    return begun


def is_constant(output: Any) -> bool:
    """Whether it is one answer for all rows that no gradient flows from, as a script's own mean row."""
    return output.grad_fn is None and output.dim() > 0 and len(output) > 1 and bool((output == output[:1]).all())


def call_of(state: WatchState, output: Any) -> OuterCall | None:
    """The call that a tensor comes from: the one under way, the one whose memory it shares, or the last that fits."""
    if state.current is not None:
        return state.current
    storage = storage_of(output)
    grads = output.grad_fn is not None
    for call in reversed(state.recent):
        if (call.grads or not grads) and any(h.storage == storage for _, h in call.outputs):
            return call
    if state.has_passed:
        return None
    rows = int(output.shape[0]) if output.dim() else 0
    if is_constant(output):
        return None
    for call in reversed(state.recent):
        if call.update != state.update:
            return None
        if call.rows and call.grads == grads and (call.rows == rows or (rows and rows % call.rows == 0)):
            return call
    return None


def _find_batch(state: WatchState, call: OuterCall) -> LoaderBatch | None:
    """The batch that holds the very inputs of a call, or inputs of the same shape: the newest of a reading that goes on, or
    else the newest."""
    storages = {h.storage for _, h in call.inputs}
    for batch in reversed(state.batches):
        if batch.holds(storages):
            return batch
    shapes = {h.shape for _, h in call.inputs if h.shape and h.shape[0] == call.rows}
    alike = [b for b in reversed(state.batches) if any(h.shape in shapes for h in b.columns.values())]
    return next((b for b in alike if b.is_under_way), alike[0] if alike else None)


def batch_with(state: WatchState, call: OuterCall) -> LoaderBatch | None:
    """The batch whose rows the call received for sure: the same memory, or the same values; None: not known."""
    call = call.first
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
