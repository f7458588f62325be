"""The doors of a run that the close look at first updates needs: gradients cleared and clipped, schedules, closures, trainers."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from trainwright.adapters.torch.batches import RecordingCollator
from trainwright.look import behind_run
from trainwright.look.ending import measure_end, measure_unbegun
from trainwright.look.evaluation import Evaluating
from trainwright.look.kinds import kind_of
from trainwright.look.look import Looking
from trainwright.look.repairs_of_torch import Repairing
from trainwright.look.results import LookResult
from trainwright.look.sets import add_sets, places_of_held
from trainwright.look.sliced_rows import LoaderlessPass
from trainwright.look.state import GivenBatch
from trainwright.rehearsal.listener import LISTENING
from trainwright.rehearsal.record import LabelKind
from trainwright.rehearsal.recorder import FIRST_TRAINING_CALLS
from trainwright.rehearsal.watch.torch.state import LoaderBatch, OuterCall, WatchState
from trainwright.seams.listening.doors import watch_classes, watch_door
from trainwright.seams.listening.torch_patches import loader_of
from trainwright.seams.listening.trainer_patches import training_left_by
from trainwright.stages.gradients import CLEARED, CLIPPED
from trainwright.tensors.items import length


class CloseLook:
    """The look at the first updates of each training of torch, as the watchers call it."""

    def __init__(self, state: WatchState) -> None:
        self._state, watching = state, state.recorder.watching
        self._looking = Looking(
            self._is_cut,
            self._count_updated,
            Repairing(LISTENING.repairs, LISTENING.repaired_training),
            Evaluating(watching, state.is_off),
        )
        self._looking.watched = _Watched(state)
        self.begin_outermost = watching(self._looking.begin_call)
        self.end_outermost = watching(self._looking.evaluating.end_call)
        """Around a call of a module from outside; below: around `backward` and an optimizer's step, where a loader is begun, and when
        a model has answered."""
        self.begin_backward, self.end_backward = (
            watching(self._looking.begin_backward),
            watching(self._looking.end_backward),
        )
        self.begin_step = functools.partial(_begin_step, self._looking, watching(self._looking.begin_step))
        self.end_step = watching(functools.partial(_end_step, state, self._looking))
        self.begin_loader = watching(functools.partial(_begin_loader, self._looking))
        self.note_answered = functools.partial(_note_evaluated, self._looking)

    def watch(self) -> None:
        """Watch what the look alone needs."""
        recorder, looking = self._state.recorder, self._looking
        LISTENING.looking = looking
        _watch_clearing(self._state, looking)
        _watch_schedules(self._state, recorder.watching(looking.note_schedule))
        _watch_clipping(self._state, looking)
        recorder.on_end.append(lambda error: recorder.guard(lambda: _finish(self._state, looking, error)))
        recorder.on_written.append(recorder.watching(self._look_behind))

    def _is_cut(self, number: int) -> bool:
        record = self._state.recorder.record
        return record.ended.is_cut or any(one.is_cut for one in record.trainings if number in (0, one.number))

    def _count_updated(self) -> int:
        record = self._state.recorder.record
        last = record.trainings[-1] if record.trainings else None
        return last.number - (record.updates <= last.begins) if last is not None else 0

    def _look_behind(self) -> None:
        record, looking = self._state.recorder.record, self._looking
        found = behind_run.try_changes(looking.done, self._state.recorder.seconds)
        if (failed := looking.failed) is not None:
            replay = failed.replay if behind_run.is_faithful(failed) else None
            for end in (one for one in record.looks if one.is_end):
                add_sets(end.facts, failed.sets, replay, is_end=True)
        record.looks = [one if one.is_end else replace(one, **found.pop(one.training, {})) for one in record.looks]


def _finish(state: WatchState, looking: Looking, error: BaseException | None) -> None:
    """The run is over; `error` is what ended it."""
    watching, record = state.recorder.watching, state.recorder.record
    made, looking.repairing = looking.repairing.list_made(), Repairing()
    if error is not None and (left := training_left_by(error)) is not None:
        looking.begin_training(kind_of(*left))
    done = watching(looking.finish)(error) or []
    end = watching(measure_end)(error, looking) if isinstance(error, Exception) else None
    if error is None and not (record.updates or state.batches):
        end = watching(measure_unbegun)(looking)
    of_trainings = {one.training: one for one in reversed(done)}  # the first, where several optimizers take turns
    record.looks = [LookResult(number, one.facts, repaired=made) for number, one in sorted(of_trainings.items())]
    record.looks += [LookResult(0, end, is_end=True, repaired=made)] if end else []


def _watch_clearing(state: WatchState, looking: Looking) -> None:
    """Let the look know of gradients that are cleared."""
    clear, cleared = state.recorder.watching(_begin_clear), state.recorder.watching(_end_change)

    def passed_on(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        if looking.gates is None or state.is_off():
            return go_on(self, *args, **kwargs)
        clear(looking)
        result = go_on(self, *args, **kwargs)
        cleared(looking, CLEARED)
        return result

    watch_door(torch.nn.Module, "zero_grad", passed_on)
    watch_door(torch.optim.Optimizer, "zero_grad", passed_on)


def _watch_schedules(state: WatchState, note: Callable[[Any, bool], object]) -> None:
    """Let the look know of schedules that advance, whichever class gives them a `step` of their own."""
    base, plateau = torch.optim.lr_scheduler.LRScheduler, torch.optim.lr_scheduler.ReduceLROnPlateau
    depth = 0

    def passed_on(go_on: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal depth
        if not state.is_off() and getattr(self, "last_epoch", 0) >= 0:  # the constructor advances it, too
            note(self, depth > 0)
        depth += 1
        try:
            return go_on(self, *args, **kwargs)
        finally:
            depth -= 1

    watch_classes(base, "step", passed_on)
    if not issubclass(plateau, base):  # before torch 2.2
        watch_classes(plateau, "step", passed_on)


def _watch_clipping(state: WatchState, looking: Looking) -> None:
    """Let the look know of gradients that torch clips."""
    begin, end = state.recorder.watching(_begin_change), state.recorder.watching(_end_clip)

    def passed_on(go_on: Any, parameters: Any, *args: Any, **kwargs: Any) -> Any:
        given = [parameters] if hasattr(parameters, "grad_fn") else list(parameters)
        begin(looking)
        answer = go_on(given, *args, **kwargs)
        end(looking, given, functools.partial(go_on, given, *args, **kwargs))
        return answer

    for name in ("clip_grad_norm_", "clip_grad_value_"):
        watch_door(torch.nn.utils.clip_grad, name, passed_on, also=[torch.nn.utils])


def _begin_step(looking: Looking, begin_step: Callable[[Any], None], optimizer: Any, args: Any, kwargs: Any) -> Any:
    """An optimizer steps: the look knows of it, behind the first call of a closure. Returns the arguments, where they change."""
    closure = args[1] if len(args) > 1 else kwargs.get("closure")
    if not callable(closure) or (looking.gates is None and looking.look.phase):
        begin_step(optimizer)
        return None
    given = _stepping(closure, lambda: begin_step(optimizer))
    return ((args[0], given, *args[2:]), kwargs) if len(args) > 1 else (args, {**kwargs, "closure": given})


def _end_step(state: WatchState, looking: Looking, optimizer: Any) -> None:
    trainings = state.recorder.record.trainings
    looking.end_step(optimizer, trainings[-1].number if trainings else 0)


def _begin_loader(looking: Looking, loader: Any, iterator: Any) -> None:
    """A loader is read from its start. Without workers the items of its batches are kept; the script's loader is left as it is."""
    looking.last_loader = weakref.ref(loader)
    if length(loader.batch_sampler) == 0 and looking.optimizers.list_live():
        looking.empty_loader = loader
    if looking.look.phase:
        return
    items, collate = None, getattr(iterator, "_collate_fn", None)
    if not loader.num_workers and callable(collate):
        iterator._collate_fn = items = RecordingCollator(collate)
    looking.begin_loader(loader, items)


@dataclass(frozen=True)
class _Watched:
    """What the run's watchers know of sets."""

    state: WatchState

    def list_given(self) -> list[GivenBatch]:
        """The batches that loaders have given and the script still holds as they were, the last one first."""
        found: list[GivenBatch] = []
        for batch in reversed(self.state.batches):
            is_mapping = not all(name.startswith("[") or not name for name in batch.columns)
            named = {name if is_mapping else name[1:-1] or "0": held.get() for name, held in batch.columns.items()}
            columns = {name: tensor for name, tensor in named.items() if tensor is not None}
            given = GivenBatch(
                columns=columns, is_mapping=is_mapping, numbers=batch.numbers, data=batch.rows, loader=_loader_of(batch)
            )
            found.append(given)
        return found

    def list_evaluated(self, training: int) -> list[LoaderlessPass]:
        """The passes without a loader of a training's models, from its first update until another training goes on."""
        record, found = self.state.recorder.record, []
        own = next((one for one in record.trainings if one.number == training), None)
        if own is None:
            return []
        later = (one.begins for one in record.trainings if one.number > training and {*own.models} & {*one.models})
        first, end = own.begins + bool(own.begins), min(later, default=record.updates)
        passes = (one for one in record.passes if not one.data and one.model in own.models)
        for made in (one for one in passes if first <= one.update <= end):
            calls = [a for a in record.answers if a.evaluation == made.number and not a.trains and a.inputs is not None]
            shapes = {a.inputs.shape[1:] for a in calls if a.inputs is not None}
            if len(shapes) == 1 and len({a.output for a in calls}) == 1:
                keys = [key for a in calls for key in (a.keys.tolist() if a.keys is not None else [-1] * len(a.labels))]
                one = LoaderlessPass(
                    rows=np.concatenate([a.inputs for a in calls if a.inputs is not None]),
                    labels=np.concatenate([a.labels for a in calls]),
                    is_trained_on=np.array([key in record.trained_keys for key in keys]),
                    where=made.where,
                )
                found.append(one)
        return found

    def count_planned(self, training: int) -> int | None:
        """How many updates a framework's trainer was to make when it began; None: unknown."""
        return next((one.planned for one in self.state.recorder.record.trainings if one.number == training), None)

    def list_labels(self, training: int) -> list[np.ndarray]:
        """The labels of a training's first calls that were all kept."""
        record = self.state.recorder.record
        begins = next((one.begins for one in record.trainings if one.number == training), 0)
        calls = [a for a in record.answers if a.trains and begins <= a.update < begins + FIRST_TRAINING_CALLS]
        is_one = len({a.output for a in calls}) == 1 and calls[0].output.kind == LabelKind.CLASSES
        return [a.labels for a in calls] if is_one else []


def _loader_of(batch: LoaderBatch) -> Any:
    iterator = batch.iterator() if batch.iterator is not None else None
    return loader_of(iterator) if iterator is not None else None


def _note_evaluated(looking: Looking, call: OuterCall) -> None:
    """The model has answered without gradients: the set of its batch is an evaluation set, unless it is trained on."""
    sets, batch = looking.look.sets, call.batch
    if sets is None or batch is None or call.grads or torch.is_grad_enabled() or not call.model.is_trained:
        return
    if batch.drawn is None or any(data is batch.rows for data in (sets.data, *(one[0] for one in sets.held))):
        return
    drawn = batch.drawn
    sets.held.append((batch.rows, places_of_held(_loader_of(batch)), lambda: not drawn.trains))


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


def _end_clip(looking: Looking, clipped: Sequence[Any], again: Callable[[], Any]) -> None:
    if looking.gates is not None and looking.gates.holds_any(clipped):
        looking.gates.end_change(CLIPPED)
    looking.note_clip(again)


def _end_change(looking: Looking, kind: str) -> None:
    if looking.gates is not None:
        looking.gates.end_change(kind)
