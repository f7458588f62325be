"""Loss functions: outputs beside labels, and what `backward` is called on."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch

from trainwright.rehearsal.record import PairSource
from trainwright.rehearsal.watch.broken import BrokenRows
from trainwright.rehearsal.watch.torch.close_look import CloseLook
from trainwright.rehearsal.watch.torch.meetings import Meetings
from trainwright.rehearsal.watch.torch.passes import call_of, is_constant
from trainwright.rehearsal.watch.torch.reading import Meeting
from trainwright.rehearsal.watch.torch.samples import is_plain, plain
from trainwright.rehearsal.watch.torch.state import OuterCall, WatchState, storage_of
from trainwright.seams.listening.doors import replaced, watch_door
from trainwright.seams.torch.loss import flat_smoothed
from trainwright.stages import IGNORED_LABEL
from trainwright.stages.loss import LOSS_FORMS

# The place of `_frames_up` among the arguments of `torch.jit.script`.
_FRAMES_UP_AT = 2
# Losses that wait to be read, on a device where reading one waits for all that goes before.
WAITING = 100


class Losses:
    """What `backward` was called on. On a GPU values are read a hundred at a time."""

    def __init__(self, state: WatchState, broken: BrokenRows) -> None:
        self._state, self._broken = state, broken
        self._waiting: list[tuple[int, Any]] = []

    def add(self, tensors: list[Any]) -> None:
        """Note the tensors that `backward` is called on."""
        if any(t.numel() != 1 or t.is_complex() for t in tensors):
            total = sum((plain(t).float().sum() for t in tensors), torch.zeros((), device=tensors[0].device))
        else:
            total = plain(tensors[0]) if len(tensors) == 1 else sum(plain(t) for t in tensors)
        if total.device.type == "cpu":
            value = float(total)
            self._state.recorder.add_loss(value)
            if not math.isfinite(value) and self._broken.is_wanted():
                self._look_for_rows()
            return
        self._waiting.append((self._state.update, total.clone().reshape(()).float()))
        if len(self._waiting) >= WAITING:
            self.flush()

    def _look_for_rows(self) -> None:
        """Look at the loader's last batches: a loader may be ahead of the training."""
        for batch in reversed(self._state.batches):
            held = [(name, column.get()) for name, column in batch.columns.items()]
            columns = [(name, t.float().cpu().numpy()) for name, t in held if t is not None and t.is_floating_point()]
            size = batch.drawn.size if batch.drawn is not None else 0
            if self._broken.look([(n, a) for n, a in columns if a.ndim and len(a)], batch.numbers, batch.rows, size):
                break

    def flush(self) -> None:
        """Read what waits."""
        waiting, self._waiting = self._waiting, []
        by_device: dict[Any, list[tuple[int, Any]]] = {}
        for update, value in waiting:
            by_device.setdefault(value.device, []).append((update, value))
        read = [
            (update, float(value))
            for many in by_device.values()
            for (update, _), value in zip(many, torch.stack([v for _, v in many]).tolist())
        ]
        for update, value in sorted(read, key=lambda one: one[0]):
            self._state.recorder.add_loss(value, update)


def watch_losses(state: WatchState, meetings: Meetings) -> None:
    """Look at each call of a loss function."""
    functional = torch.nn.functional
    meet = state.recorder.watching(functools.partial(_meet, state, meetings))

    def passed_on(form: str, go_on: Any, *args: Any, **kwargs: Any) -> Any:
        if state.is_off() or state.in_loss or state.in_backward:
            result = go_on(*args, **kwargs)
            if state.in_gradient is not None and len(args) > 1:
                state.in_gradient.append((form, *args[:2], result, state.module))
            return result
        state.in_loss += 1
        try:
            result = go_on(*args, **kwargs)
        finally:
            state.in_loss -= 1
        meet(form, result, *args, **kwargs)
        return result

    forms = {name: form for name, form in LOSS_FORMS.items() if form is not None}
    originals = {name: getattr(functional, name) for name in forms}
    for name, form in forms.items():
        watch_door(functional, name, functools.partial(passed_on, form))
    _spare_scripting(functional, originals)


def _meet(state: WatchState, meetings: Meetings, form: str, result: Any, *args: Any, **kwargs: Any) -> None:
    answer: Any = args[0] if args else kwargs.get("input")
    target: Any = args[1] if len(args) > 1 else kwargs.get("target")
    if not (is_plain(answer) and is_plain(target) and is_plain(result)) or target.grad_fn is not None:
        return
    if form == "numbers" and answer.grad_fn is None and torch.is_grad_enabled() and result.requires_grad:
        return
    if not state.due and not state.recent and state.current is None and result.requires_grad:
        meetings.count(form, plain(answer), plain(target), kwargs.get("ignore_index", IGNORED_LABEL))
        return
    is_mean = result.numel() == 1 and kwargs.get("reduction", "mean") == "mean" and not kwargs.get("label_smoothing")
    call = call_of(state, answer)
    if call is None and (state.has_passed or is_constant(answer)):
        return
    if call is not None and call is state.current:
        _learn_labels(call, target)
    meetings.add(
        Meeting(
            form=form,
            output=plain(answer),
            target=plain(target),
            source=PairSource.LOSS,
            call=call,
            update=state.update,
            ignored=kwargs.get("ignore_index", IGNORED_LABEL),
            node=result.grad_fn._sequence_nr() if result.grad_fn is not None else None,
            value=plain(result) if is_mean and kwargs.get("weight") is None and len(args) < 3 else None,
        )
    )


def _learn_labels(call: OuterCall, target: Any) -> None:
    """Note which arguments of a call under way hold the labels: ones behind the first, or no more than the rest is."""
    sizes, storage = {name: math.prod(held.shape) for name, held in call.inputs}, storage_of(target)
    found = {name for name, held in call.inputs if held.storage == storage}
    if all(n[0] in "123456789" for n in found) or 2 * sum(sizes[n] for n in found) <= sum(sizes.values()):
        call.model.label_arguments |= found


def watch_smoothing(state: WatchState, meetings: Meetings, kind: Any) -> None:
    """Look at the Trainer's loss with smoothed labels, `LabelSmoother`, which calls no loss function."""
    meet = state.recorder.watching(functools.partial(_meet_smoothed, state, meetings))

    def passed_on(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        result = go_on(self, *args, **kwargs)
        if not (state.is_off() or state.in_loss or state.in_backward):
            meet(self, result, *args, **kwargs)
        return result

    watch_door(kind, "__call__", passed_on)


def _meet_smoothed(
    state: WatchState,
    meetings: Meetings,
    smoother: Any,
    result: Any,
    model_output: Any,
    labels: Any,
    shift_labels: bool = False,
    **_: Any,
) -> None:
    rows, of_rows, words = flat_smoothed(smoother, model_output, labels, shift_labels)
    _meet(state, meetings, "classes", result, rows, of_rows, **words)


def _spare_scripting(functional: Any, originals: dict[str, Any]) -> None:
    """TorchScript compiles functions from their source, and so must find torch's own; names of classes it looks up in the
    frame that calls it."""

    def passed_on(go_on: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) <= _FRAMES_UP_AT:
            kwargs["_frames_up"] = kwargs.get("_frames_up", 0) + 2  # the door's frame, and this one
        with replaced((functional, name, original) for name, original in originals.items()):
            return go_on(*args, **kwargs)

    watch_door(torch.jit, "script", passed_on)


def watch_backward(
    state: WatchState, close: CloseLook, losses: Losses, meetings: Meetings, begin_backward: Callable[[list[Any]], None]
) -> None:
    """Look at what `backward` and `torch.autograd.grad` are called on."""
    begin = state.recorder.watching(functools.partial(_begin_backward, losses, meetings))
    settle: Callable[[Any], object] = state.recorder.watching(
        lambda roots: meetings.settle(_plain_roots(roots), is_whole=False)
    )

    def passed_on(is_backward: bool, go_on: Any, tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if state.is_off() or state.in_backward:
            return go_on(tensors, *args, **kwargs)
        begin_backward(tensors)
        if is_backward:
            begin(tensors)
            close.begin_backward()
        else:
            settle(tensors)
        state.in_backward = True
        try:
            result = go_on(tensors, *args, **kwargs)
        finally:
            state.in_backward = False
        if is_backward:
            close.end_backward()
        return result

    for owner, name in ((torch.Tensor, "backward"), (torch.autograd, "backward"), (torch.autograd, "grad")):
        watch_door(owner, name, functools.partial(passed_on, name == "backward"))


def watch_scaling(state: WatchState) -> None:
    """Note that a gradient scaler multiplies losses."""
    record = state.recorder.record

    def passed_on(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        record.is_scaled = record.is_scaled or self.is_enabled()
        return go_on(self, *args, **kwargs)

    for module in (torch.amp, torch.cuda.amp):  # before torch 2.3, the second one only
        kind: Any = getattr(module, "GradScaler", None)
        if kind is None or "scale" not in vars(kind):
            continue
        watch_door(kind, "scale", passed_on)


def _plain_roots(tensors: Any) -> list[Any]:
    return [t for t in (tensors if isinstance(tensors, (tuple, list)) else [tensors]) if is_plain(t)]


def _begin_backward(losses: Losses, meetings: Meetings, tensors: Any) -> None:
    roots = _plain_roots(tensors)
    if roots:
        losses.add(roots)
        meetings.settle(roots)
        meetings.note_trained_sets(roots)
