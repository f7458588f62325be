"""The doors of a run that the close look at first updates needs: gradients cleared and clipped, schedules, closures, trainers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from trainwright.adapters.torch.batches import RecordingCollator
from trainwright.look import trials
from trainwright.look.ending import measure_end
from trainwright.look.look import Looking
from trainwright.look.repairs import Repairing
from trainwright.rehearsal.listening import LISTENING
from trainwright.rehearsal.record_rows import Looked
from trainwright.rehearsal.watch.state import State
from trainwright.seams.listening.torch_patches import watch_clips
from trainwright.stages.gradients import CLEARED, CLIPPED


def watch_closely(state: State) -> None:
    """Look closely at the first updates of each training of torch."""
    record, watching = state.recorder.record, state.recorder.watching

    def is_cut(number: int) -> bool:
        return record.ended.is_cut or any(one.is_cut for one in record.trainings if number in (0, one.number))

    def count_updated() -> int:
        last = record.trainings[-1] if record.trainings else None
        return last.number - (record.updates <= last.begins) if last is not None else 0

    looking = Looking(is_cut, count_updated, Repairing(LISTENING.repairs, LISTENING.repaired_training))
    LISTENING.looking = looking
    state.begin_outermost = watching(looking.begin_call)
    state.begin_backward, state.end_backward = watching(looking.begin_backward), watching(looking.end_backward)
    state.begin_loader = watching(lambda loader, iterator: _begin_loader(looking, loader, iterator))
    _watch_clearing(state, looking)
    _watch_schedules(state, watching(looking.note_schedule))
    watch_clips(lambda: watching(_begin_change)(looking), watching(functools.partial(_end_clip, looking)))
    _watch_steps(state, looking)

    def try_changes() -> None:
        looks = [one for one in looking.done if one.training > LISTENING.count_walked()]
        found = trials.try_changes(looks, state.recorder.seconds)
        record.looks = [replace(one, **found.get(one.training, {})) for one in record.looks]

    state.recorder.on_error.append(lambda error: state.recorder.guard(lambda: _finish(state, looking, error)))
    state.recorder.on_written.append(watching(try_changes))


def _finish(state: State, looking: Looking, error: BaseException | None) -> None:
    """The run is over; `error` is what ended it."""
    watching, record = state.recorder.watching, state.recorder.record
    made, looking.repairing = looking.repairing.list_made(), Repairing()
    if error is not None and (left := LISTENING.find_training(error)) is not None:
        looking.begin_training(left[0], **left[1])
    done = watching(looking.finish)(error) or []
    end = watching(measure_end)(error, looking) if isinstance(error, Exception) else None
    of_trainings = {one.training: one for one in reversed(done)}  # the first, where several optimizers take turns
    record.looks = [Looked(number, one.facts, repaired=made) for number, one in sorted(of_trainings.items())]
    record.looks += [Looked(0, end, is_end=True, repaired=made)] if end else []


def _watch_clearing(state: State, looking: Looking) -> None:
    """Let the look know of gradients that are cleared."""
    clear, cleared = state.recorder.watching(_begin_clear), state.recorder.watching(_end_change)

    def clearing(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def passed_on(self: Any, *args: Any, **kwargs: Any) -> Any:
            if looking.gates is None or state.is_off():
                return original(self, *args, **kwargs)
            clear(looking)
            result = original(self, *args, **kwargs)
            cleared(looking, CLEARED)
            return result

        return passed_on

    torch.nn.Module.zero_grad = clearing(torch.nn.Module.zero_grad)
    torch.optim.Optimizer.zero_grad = clearing(torch.optim.Optimizer.zero_grad)


def _watch_schedules(state: State, note: Callable[[Any], object]) -> None:
    """Let the look know of schedules that advance."""
    original = torch.optim.lr_scheduler.LRScheduler.step

    @functools.wraps(original)
    def passed_on(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not state.is_off() and getattr(self, "last_epoch", -1) >= 0:  # the constructor advances it, too
            note(self)
        return original(self, *args, **kwargs)

    torch.optim.lr_scheduler.LRScheduler.step = passed_on


def _watch_steps(state: State, looking: Looking) -> None:
    """Let the look know of optimizers that step."""
    begin_step, end_step = state.recorder.watching(looking.begin_step), state.recorder.watching(looking.end_step)
    trainings = state.recorder.record.trainings

    def before(optimizer: Any, args: Any, kwargs: Any) -> Any:
        if state.is_off():
            return None
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if not callable(closure) or (looking.gates is None and looking.look.phase):
            begin_step(optimizer)
            return None
        given = _stepping(closure, lambda: begin_step(optimizer))
        return ((args[0], given, *args[2:]), kwargs) if len(args) > 1 else (args, {**kwargs, "closure": given})

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        training = trainings[-1].number if trainings else 0
        if not state.is_off():
            end_step(optimizer, training)

    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)


def _begin_loader(looking: Looking, loader: Any, iterator: Any) -> None:
    """A loader is read from its start. Without workers the items of its batches are kept; the script's loader is left as it is."""
    if looking.look.phase:
        return
    items, fetcher = None, getattr(iterator, "_dataset_fetcher", None)
    if fetcher is not None and callable(fetcher.collate_fn):
        fetcher.collate_fn = items = RecordingCollator(fetcher.collate_fn)
    looking.begin_loader(loader, items)


def _stepping(closure: Callable[..., Any], step: Callable[[], None]) -> Callable[..., Any]:
    """A closure behind whose first call the optimizer uses the gradients."""
    told: list[bool] = []

    @functools.wraps(closure)
    def passed_on(*args: Any, **kwargs: Any) -> Any:
        answer = closure(*args, **kwargs)
        if not told:
            told.append(True)
            step()
        return answer

    return passed_on


def _begin_clear(looking: Looking) -> None:
    if looking.gates is not None:
        looking.gates.begin_clear()


def _begin_change(looking: Looking) -> None:
    if looking.gates is not None:
        looking.gates.begin_change()


def _end_clip(looking: Looking, again: Callable[[], Any]) -> None:
    _end_change(looking, CLIPPED)
    looking.note_clip(again)


def _end_change(looking: Looking, kind: str) -> None:
    if looking.gates is not None:
        looking.gates.end_change(kind)
