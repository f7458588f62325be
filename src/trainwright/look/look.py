"""Looks closely at the first two updates of each training, as they happen: when to begin, what to keep, when to leave.

The observers of a step stand from the first call of a model with gradients until its optimizers step; what a second update shows
is noted at its begin. The doors of the run (`rehearsal/watch/torch/close_look.py`) call this. No call of the script is repeated, but for
the probes of the forward pass, which leave weights, buffers, modes and random numbers as they were.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch import nn

from trainwright.adapters.script_end.refused_calls import refused_in
from trainwright.adapters.torch.batches import POOLED
from trainwright.core import Seam
from trainwright.look.called import (
    LiveOptimizers,
    Several,
    find_outermost,
    has_mode_on_top,
    has_room,
    holds,
    is_among,
    is_compiled,
    name_inputs,
    note_trained,
)
from trainwright.look.evaluation import Evaluating
from trainwright.look.facts import (
    add_other_batch,
    add_second_step,
    is_left_known,
    keep_left_gradients,
    measure_first_step,
)
from trainwright.look.of_loop import LoopTraining
from trainwright.look.repairs_of_torch import Repairing
from trainwright.look.results import MOST_LOOKS
from trainwright.look.state import Look, Phase, Watched
from trainwright.look.training_facts import add_end, add_further_batches, measure_update
from trainwright.seams.listening.seen import quiet, seen
from trainwright.seams.source.places import place_of, user_frame, user_place
from trainwright.seams.state.snapshot import RandomState
from trainwright.seams.torch.gates import Gates
from trainwright.seams.torch.graph import GraphWatch
from trainwright.seams.torch.observer import Observer

# Micro-batches, or calls before a loss (a policy that plays), after which a look waits for the next update, so many times.
MOST_DRAWS, MOST_CALLS, MOST_TRIES = 256, 32, 4
MOST_RATES = 20_000
NO_REPAIRS = Repairing()


class Looking:
    """The looks at a script's trainings, one after the other."""

    def __init__(
        self,
        is_cut: Callable[[int], bool] = lambda training: False,
        count_updated: Callable[[], int] = lambda: 0,
        repairing: Repairing = NO_REPAIRS,
        evaluating: Evaluating | None = None,
    ) -> None:
        self.evaluating = evaluating or Evaluating()
        self._is_cut, self._count, self.repairing = is_cut, count_updated, repairing
        """Whether the training of a number, 0 for one that made no update, was ended before its end."""
        self.watched: Watched | None = None
        self.done: list[Look] = []
        self.failed: Look | None = None
        """The look at the training whose step raised."""
        self.look, self.optimizers = Look(), LiveOptimizers()
        self.loader: Any = None
        self.items: Any = None
        self.last_loader: Callable[[], Any] = lambda: None
        self.empty_loader: Any = None
        self.kind = LoopTraining()
        """Of the training that is under way."""
        self.is_given_up = False
        self.tries, self.waits_for_step = 0, False

    def begin_training(self, kind: LoopTraining) -> None:
        """A framework's trainer begins to train."""
        self.kind = kind
        if self._is_repaired():
            kind.mend(self.repairing)

    def end_training(self, error: BaseException | None = None) -> None:
        """The framework's trainer is left, by an exception or at its end."""
        if self.look.facts:
            with quiet():
                self._end(error)
        self.kind = LoopTraining()

    def begin_call(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """A module is called from outside."""
        look = self.look
        is_free = not (self.is_given_up or look.is_open or self.kind.is_asked_again)
        self.evaluating.begin_call(module, self.optimizers.list_held, may_watch=is_free)
        if self.is_given_up or not torch.is_grad_enabled():
            return
        is_waiting = look.phase == Phase.FIRST and look.is_open and "step" not in look.passed.calls
        is_anew = is_waiting and module is look.roots[0]
        if is_anew and module.training and not look.step.is_training:
            self._close()  # gradients were on in an evaluation before the training
            look.retire_repairs()
            self.look = look = Look(is_schedule_first=look.is_schedule_first, schedule_first_at=look.schedule_first_at)
        if look.phase == Phase.WAITING and (self.waits_for_step or not self._begins(module)):
            return
        if look.phase == Phase.AFTER and module.training and self._is_next(module):
            self._end()
            look = self.look
            if self.is_given_up or not self._begins(module):
                return
        with quiet():
            self._note_call(module, args, kwargs)
        if self.look.phase >= Phase.SECOND:
            self.look.replay.begin_call(module)

    def begin_backward(self) -> None:
        """A backward pass begins."""
        look = self.look
        look.replay.backwards += 1
        if look.phase == Phase.SECOND and look.measured is not None and not is_left_known(look.facts):
            with quiet():
                keep_left_gradients(look.measured)
        if look.phase in (Phase.FIRST, Phase.SECOND) and look.gates is not None:
            look.gates.begin_backward()

    def end_backward(self) -> None:
        """A backward pass has ended."""
        if self.look.phase == Phase.SECOND and self.look.measured is not None:
            with quiet():
                add_second_step(self.look.facts, self.look.measured)
        if self.look.phase in (Phase.FIRST, Phase.SECOND) and self.look.gates is not None:
            self.look.gates.end_backward()

    @property
    def gates(self) -> Gates | None:
        """Where calls between updates are noted; None: nothing is looked at just now."""
        return self.look.gates if self.look.phase in (Phase.FIRST, Phase.SECOND) else None

    def begin_step(self, optimizer: Any) -> None:
        """An optimizer is about to use its gradients."""
        look = self.look
        self.evaluating.note_update()
        self._note_modes()
        if look.phase >= Phase.SECOND:
            look.replay.begin_step(optimizer)
        if look.gates is None or not holds(optimizer, look.model):
            return
        if look.phase == Phase.SECOND:
            look.gates.step(optimizer)
        if look.phase != Phase.FIRST:
            return
        is_repeated = any(one is optimizer for one in look.gates.passed.optimizers)
        if not is_repeated:
            look.gates.step(optimizer)
        waiting = [o for o in self.optimizers.list_live() if not any(one.is_known(o) for one in self.done)]
        missing = [o for o in waiting if holds(o, look.model) and not is_among(o, look.gates.passed.optimizers)]
        if is_repeated or not missing:
            self._measure()

    def end_step(self, optimizer: Any, training: int) -> None:
        """An optimizer has stepped, in the training of this number."""
        look, self.waits_for_step = self.look, False
        if look.repaired is not None:
            look.repaired.forget()
        if look.phase == Phase.FIRST and look.measured is not None:
            look.training, look.phase = training, Phase.SECOND
            with quiet():
                measure_update(look, self)
                look.note_parts()
            look.gates = Gates(list(look.model.parameters()), keep=False)
        elif look.phase == Phase.SECOND and look.has_passed("step"):
            look.phase, look.gates = Phase.AFTER, None
        is_first = bool(look.optimizers) and look.optimizers[0]() is optimizer
        if is_first and len(look.rates) < MOST_RATES:
            look.updates += 1
            look.rates.append(max((float(group["lr"]) for group in optimizer.param_groups), default=0.0))

    def note_refused(self, name: str, function: Any, keywords: Any, error: Exception, frame: FrameType) -> None:
        """A framework's constructor rejects its arguments."""
        seen().refused = error, refused_in(name, function, keywords, error, frame)

    def note_clip(self, again: Callable[[], Any]) -> None:
        """Gradients were clipped; `again` clips them once more."""
        if (tape := self.look.replay.tape) is not None:
            tape.clips.append(again)

    def note_schedule(self, schedule: Any, is_part: bool) -> None:
        """A schedule advances: the script's, or one that this is made of."""
        look = self.look
        if look.phase == Phase.WAITING:
            look.is_schedule_first, look.schedule_first_at = True, look.schedule_first_at or user_place()
            return
        if not (look.is_settled or is_among(schedule, look.schedules) or hasattr(schedule, "_schedulers")):
            look.schedules.append(schedule)  # of one that is made of others, those are known, with their lengths
        if not is_part:
            look.schedule_steps += 1
            if self.gates is not None:
                self.gates.note_schedule()

    def begin_loader(self, loader: Any, items: Any) -> None:
        """A loader is read from its start; `items`: its collator, which keeps what it was given, if it is watched."""
        if self.look.phase == Phase.WAITING or self.loader is None:
            self.loader, self.items = loader, items

    def finish(self, error: BaseException | None) -> list[Look]:
        """The run is over; `error` is what ended it. Returns the looks at trainings."""
        look = self.look
        with quiet():
            if look.phase == Phase.FIRST and look.observer is not None and (error is not None or not self._is_cut(0)):
                self._finish_first(error)
            self._end(error)
        return self.done

    # One look

    def _begins(self, module: nn.Module) -> bool:
        """Begin the look, if this call belongs to a training."""
        own = {id(p) for p in module.parameters() if p.requires_grad}
        held = self.optimizers.list_held()
        if not (held & own or (not held and own and self.loader is not None and module.training)):
            return False
        if has_mode_on_top() or is_compiled(module) or not has_room(module):
            self.is_given_up = True
            return False
        look = self.look
        look.loader, look.items, look.model = self.loader, self.items, find_outermost(module)
        if not self.kind.had_optimizer:  # the Trainer's own is not the script's
            for optimizer in self.optimizers.list_live():
                seen().optimizers.pop(optimizer, None)
        frame = user_frame(sys._getframe(1))
        look.where = place_of(frame) if frame is not None else None
        while frame is not None:
            look.scope = {**frame.f_globals, **frame.f_locals, **look.scope}
            frame = user_frame(frame.f_back) if frame.f_back is not None else None
        repairs = self.repairing.list_step() if self._is_repaired() else []
        if self._is_repaired():
            self.repairing.mend_parts(look.model, self.optimizers.list_live())
            look.replay.active.kept += [one for one in repairs if one.seam not in (Seam.TRAINER, Seam.OPTIMIZER)]
        look.observer = Observer(look.model, repairs, roots=[module], tape=look.replay.begin(), detail=True)
        look.graph = GraphWatch(look.model, repairs, detail=True)
        look.phase, look.is_open, look.began = Phase.FIRST, True, time.monotonic()
        look.gates = gates = Gates(list(look.model.parameters()), keep=True)
        look.graph.updates = lambda: gates.passed.steps
        self.look.copy_weights()
        look.observer.__enter__()
        look.graph.__enter__()
        return True

    def _note_call(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        look = self.look
        is_root = bool(look.roots) and module is look.roots[0]
        if look.phase == Phase.FIRST and is_root and look.gates is not None:
            calls = look.gates.passed.calls
            if "step" not in calls and "backward" in calls:  # a further micro-batch: the observers saw one
                look.draws += 1
                self._close()
            look.calls += 1
            has_moved = "step" not in calls and look.count_changes() != look.version  # by hand, as SAM does
            if has_moved or look.draws > MOST_DRAWS or (look.is_open and look.calls > MOST_CALLS):
                self._close()
                look.retire_repairs()
                self.look, self.tries = Look(), self.tries + 1
                self.is_given_up = self.is_given_up or self.tries == MOST_TRIES
                self.waits_for_step = True
                return
        if look.phase == Phase.FIRST and look.is_open:
            self._join(module)
            if is_root and not look.inputs:
                look.inputs = name_inputs(module, args, kwargs)
        elif look.phase >= Phase.SECOND and module is look.root():
            look.is_still = bool(look.modes) and not module.training
            if look.measured is not None:
                look.views.append(found := name_inputs(module, args, kwargs))
                given = {**dict(zip(found, args)), **kwargs}
                look.carried = look.carried or [name for name, v in given.items() if getattr(v, "grad_fn", None)]
                if len(look.views) == 1 and look.phase == Phase.SECOND:
                    add_other_batch(look.measured, look.facts, found)
                if len(look.views) >= POOLED and look.phase == Phase.AFTER:
                    add_further_batches(look)
                    look.settle()

    def _note_modes(self) -> None:
        """The training goes on in evaluation mode where the first step was made in training mode."""
        look = self.look
        module, model = look.root(), look.outer()
        if look.lost or not look.is_still or module is None or model is None:
            return
        look.lost = tuple(n for n, m in model.named_modules() if look.modes.get(n) and not m.training)
        look.lost_at = seen().stilled.get(module)

    def _join(self, module: nn.Module) -> None:
        """A further module is called in the step: what holds both is the model from now on."""
        look = self.look
        assert look.observer is not None and look.graph is not None and look.gates is not None
        look.observer.keeps_output = "backward" in look.passed.calls and "step" not in look.passed.calls
        if any(module is root for root in look.roots) or not any(p.requires_grad for p in module.parameters()):
            return
        if any(module is one for one in look.model.modules()):
            look.roots.append(module)
            return
        names = {id(value): name for name, value in look.scope.items() if isinstance(value, nn.Module)}
        top = find_outermost(module)
        if not isinstance(look.model, Several):
            holder = Several()
            holder.add_module(names.get(id(look.model), "model"), look.model)
            look.model = holder
        look.model.add_module(names.get(id(top), f"model{len(look.roots)}"), top)
        look.observer.join(look.model, module)
        look.graph.join(look.model)
        look.gates.join(look.model)
        self.look.copy_weights()

    def _measure(self) -> None:
        """Before the first update: the forward pass, the loss and the gradients, with the weights that made them."""
        look = self.look
        random = RandomState()
        try:
            with quiet():
                if self._close():
                    look.replay.begin_first(look.model, look.roots, look.passed.optimizers, look.list_start())
                    measure_first_step(look, self)
        finally:
            random.put_back()

    def _finish_first(self, error: BaseException | None) -> None:
        """No optimizer stepped, or the step raised."""
        look = self.look
        if not self._close() or (
            error is not None and look.observer is not None and not look.observer.is_left_by(error)
        ):
            return
        if error is not None and look.observer is not None:
            look.observer.note_failure(error)
        elif not look.has_passed("backward"):
            return
        look.draws = 1
        measure_first_step(look, self)
        measure_update(look, self, is_made=error is None)

    def _end(self, error: BaseException | None = None) -> None:
        """This look is over; the next one may begin."""
        look = self.look
        look.retire_repairs()
        look.replay.leave()
        evaluated = self.evaluating.end_training()
        if look.facts:
            look.facts |= evaluated
            if look.phase >= Phase.FIRST:
                add_end(look, self, is_ended=error is None and not self._is_cut(look.training))
            look.settle()
            self.done.append(look)
            for optimizer in look.optimizers:
                note_trained(optimizer())
        self.is_given_up = self.is_given_up or len(self.done) >= MOST_LOOKS
        self.look, self.loader, self.items = Look(), None, None

    def _close(self) -> bool:
        """Leave the step; False where another mode of the script lies over the observers, which then stay without effect."""
        look = self.look
        if not look.is_open or look.observer is None or look.graph is None:
            return True
        look.is_open = False
        if torch.overrides._get_current_function_mode() is not look.graph:
            look.graph.retire()
            look.observer.retire()
            self.is_given_up = True
            return False
        look.graph.__exit__(None, None, None)
        look.observer.__exit__(None, None, None)
        if self._is_repaired():  # to the end of the training
            look.repaired = Observer(look.model, self.repairing.list_step(), roots=look.roots)
            look.repaired_graph = GraphWatch(look.model, self.repairing.list_step())
            look.repaired.__enter__()
            look.repaired_graph.__enter__()
        return True

    def _is_repaired(self) -> bool:
        """Whether the training under way, or that begins, is the one that repairs are for."""
        return bool(self.repairing.repairs) and max(1, self.repairing.training) == self.number

    @property
    def number(self) -> int:
        """The number of the training under way, or that begins."""
        return self.look.training or self._count() + 1

    # What is there

    def _is_next(self, module: nn.Module) -> bool:
        """Whether a further training begins: an optimizer that the look has not met holds weights of this module."""
        others = [o for o in self.optimizers.list_live() if not any(one.is_known(o) for one in (self.look, *self.done))]
        return bool(self.look.optimizers) and any(holds(o, module) for o in others)
