"""Steps of optimizers: updates, rates, gradient norms, and the trainings of loops that say neither begin nor end."""

from __future__ import annotations

import sys
import weakref
from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from trainwright.rehearsal.watch.torch.close_look import CloseLook
from trainwright.rehearsal.watch.torch.meetings import Meetings
from trainwright.rehearsal.watch.torch.parameters import LOOKED_AT, Parameters
from trainwright.rehearsal.watch.torch.samples import fingerprint
from trainwright.rehearsal.watch.torch.state import WatchState, weights_fingerprint
from trainwright.seams.listening.doors import take_away
from trainwright.seams.source.places import nearest_place
from trainwright.tensors.torch.objects import held_by


class Optimizers:
    """Follows the steps of all optimizers."""

    def __init__(self, state: WatchState, meetings: Meetings, parameters: Parameters) -> None:
        self._state = state
        self._meetings = meetings
        self._parameters = parameters
        self._had = False
        self._under_way: Any = None
        """The optimizer whose step it is; optimizers within it (SAM, LARS) make no updates of their own."""
        self._known: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        """The training that each belongs to, by its place in the record."""

    @property
    def has_stepped(self) -> bool:
        """Whether there is an optimizer at all."""
        return self._had

    def begin(self, optimizer: Any) -> None:
        """A step begins."""
        if self._under_way is not None and self._under_way is not optimizer:
            return
        self._under_way, self._had = optimizer, True
        if optimizer not in self._known or self._ended(optimizer):
            self._begin_training(optimizer)
        if self._meetings.pending:
            self._meetings.leave(held_by(optimizer))
        self._look(optimizer)

    def end(self, optimizer: Any) -> None:
        """A step is done."""
        if self._under_way is not optimizer:
            return
        self._under_way = None
        self._state.end_update()
        self._parameters.after_step(optimizer)
        training = self._state.recorder.training
        if training is not None and training.is_loop and not training.has_moved:
            made = self._state.update + 1 - training.begins
            if made in LOOKED_AT or made % 1000 == 0:
                training.has_moved = self._weigh() != training.weights_before

    def is_outermost(self, optimizer: Any) -> bool:
        """Whether the step under way is this optimizer's."""
        return self._under_way is optimizer

    def _look(self, optimizer: Any) -> None:
        number = self._state.update + 1
        due = self._state.due
        norm = self._parameters.before_step(optimizer, due)
        if due:
            rate = max((float(group.get("lr", 0.0)) for group in optimizer.param_groups), default=0.0)
            self._state.recorder.add_update(optimizer, number, rate, norm)

    def _ended(self, optimizer: Any) -> bool:
        """Whether the training that it belongs to has ended."""
        trainings = self._state.recorder.record.trainings
        return not self._state.managed and self._known[optimizer] != len(trainings) - 1

    def _begin_training(self, optimizer: Any) -> None:
        """A new optimizer begins a training, unless several step in turn: then they have one training between them."""
        state, trainings = self._state, self._state.recorder.record.trainings
        held = held_by(optimizer)
        is_new = optimizer not in self._known
        state.held |= held
        for model in state.models_with(held):
            model.is_trained = True
        if state.managed:
            self._known[optimizer] = len(trainings) - 1
            return
        if not is_new and self._known[optimizer] >= 0 and trainings[-1].is_loop:
            first = self._known[optimizer]  # it steps again: what was begun since is no training of its own
            if all(one.is_loop for one in trainings[first:]):
                del trainings[first + 1 :]
                trainings[first].ends = trainings[first].weights_after = None
                also = {model.number for one in self._known for model in state.models_with(held_by(one))}
                trainings[first].models = tuple(sorted({*trainings[first].models, *also}))
                for other, place_in in list(self._known.items()):
                    self._known[other] = min(place_in, first)
                return
        self.end_training()
        found = list({m.number: m for m in state.models_with(held)}.values())
        self._weighed = [m.ref for m in found], weakref.ref(optimizer)
        where, models = nearest_place(sys._getframe(1)), tuple(m.number for m in found)
        known = state.recorder.next_training(where, models=models, weights_before=self._weigh())
        state.recorder.begin_training(known)
        self._known[optimizer] = len(trainings) - 1

    _weighed: tuple[list[weakref.ref[Any]], weakref.ref[Any]] | None = None

    def _weigh(self) -> float | None:
        """The fingerprint of what the training's first optimizer holds: of its model, if there is one."""
        if self._weighed is None:
            return None
        modules = [m for ref in self._weighed[0] if (m := ref()) is not None]
        if len(modules) == 1 and len(self._weighed[0]) == 1:
            return weights_fingerprint(modules[0])
        optimizer = self._weighed[1]()
        if optimizer is None:
            return None
        return fingerprint(p for group in optimizer.param_groups for p in group["params"])

    def end_training(self) -> None:
        """The training of a loop has ended: at a further training's begin, and at the run's end."""
        self._meetings.count_labels()
        if (training := self._state.recorder.training) is not None and training.is_loop:
            self._state.recorder.end_training(self._weigh())


def watch_optimizers(state: WatchState, close: CloseLook, optimizers: Optimizers) -> None:
    """Look at each step of an optimizer."""
    begin, end = state.recorder.watching(optimizers.begin), state.recorder.watching(optimizers.end)

    def before(optimizer: Any, args: Any, kwargs: Any) -> Any:
        if state.is_off():
            return None
        begin(optimizer)
        return close.begin_step(optimizer, args, kwargs)

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not state.is_off():
            is_outermost = optimizers.is_outermost(optimizer)
            end(optimizer)
            if is_outermost:  # what it calls may end the run: no watcher's own
                state.recorder.end_update()
            close.end_step(optimizer)

    take_away(register_optimizer_step_pre_hook(before).remove)
    take_away(register_optimizer_step_post_hook(after).remove)
