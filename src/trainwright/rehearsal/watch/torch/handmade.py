"""Updates that a script makes itself, without an optimizer, some of them with gradients that torch.func takes of a loss: each of
those is an update, and what a loss function was given in it is trained on."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from trainwright.core import Place
from trainwright.rehearsal.record import PairSource, Training
from trainwright.rehearsal.recorder import asks_for_rows
from trainwright.rehearsal.watch.torch.meetings import Meetings
from trainwright.rehearsal.watch.torch.optimizers import Optimizers
from trainwright.rehearsal.watch.torch.parameters import Parameters
from trainwright.rehearsal.watch.torch.reading import Meeting
from trainwright.rehearsal.watch.torch.samples import fingerprint, is_plain
from trainwright.rehearsal.watch.torch.state import HeldTensor, OuterCall, WatchState, storage_of
from trainwright.seams.listening.doors import watch_door
from trainwright.seams.source.places import nearest_place
from trainwright.seams.torch.graph import leaves_behind

# Nodes of the graph that are looked through for weights, and weights.
MOST_NODES, MOST_LEAVES = 5000, 200


class Handmade:
    """Looks whether weights have changed since the last `backward`, as long as no optimizer has stepped."""

    def __init__(self, state: WatchState, optimizers: Optimizers, parameters: Parameters) -> None:
        self._state = state
        self._optimizers = optimizers
        self._parameters = parameters
        self._leaves: list[Any] = []
        self._weights: float | None = None
        self._taken = 0
        """Gradients that were taken while these weights stood still."""
        self._where: Place | None = None
        self._of_rows = False
        """Whether the last `backward` reached other leaves beside a model's parameters: rows whose own gradient is asked for."""

    def begin_backward(self, roots: list[Any]) -> bool:
        """`backward` is called. Whether an update was made before it."""
        if self._optimizers.has_stepped:
            self._leaves = []
            return False
        has_changed = self.has_changed()
        found = [*itertools.islice(filter(is_plain, leaves_behind(roots, MOST_NODES)), MOST_LEAVES)]
        leaves = [one for one in found if isinstance(one, torch.nn.Parameter)] or found
        self._of_rows = len(leaves) < len(found)
        weights = fingerprint(leaves)
        if (
            not has_changed
            and self._weights not in (None, weights)
            and [t.shape for t in leaves] == [t.shape for t in self._leaves]
        ):
            self._begin_training()
            has_changed = True
        self._taken = self._taken + 1 if weights == self._weights else 1
        self._leaves, self._weights, self._where = leaves, weights, nearest_place(sys._getframe(1))
        return has_changed

    def finish(self) -> None:
        """Gradients of the same rows, taken again and again for weights that nothing changes, are a training that moves nothing;
        not where they are those of the rows themselves (an attack, salience)."""
        record = self._state.recorder.record
        most = max((len(one.labels) for one in record.answers if one.trains), default=0)
        comes_again = len(record.trained_keys) > most and max(record.trained_keys.values(), default=0) > 1
        if comes_again and not (record.updates or record.trainings or self._optimizers.has_stepped or self._of_rows):
            training = Training(number=1, begins=0, ends=self._taken, has_moved=False, where=self._where)
            record.trainings.append(training)
            record.updates = self._taken

    def has_changed(self) -> bool:
        """Whether the weights of the last `backward` were changed in place since."""
        if self._optimizers.has_stepped or not self._leaves or self._weights is None:
            return False
        weights = fingerprint(self._leaves)
        if weights == self._weights:
            return False
        self._begin_training()
        self._parameters.hold_by_hand(self._leaves, self._state.update + 1)
        self._weights = weights
        return True

    def _begin_training(self) -> None:
        """The first of these updates begins a training."""
        recorder = self._state.recorder
        if recorder.training is None and not self._state.managed:
            where = nearest_place(sys._getframe(1))
            recorder.begin_training(recorder.next_training(where, weights_before=self._weights))


class Functional:
    """Follows the outermost gradients."""

    def __init__(self, state: WatchState, meetings: Meetings, has_stepped: Callable[[], bool]) -> None:
        self._state, self._meetings, self._has_stepped = state, meetings, has_stepped
        self._training: Training | None = None
        self._weights: set[float] = set()
        self._most_rows = 0

    @property
    def is_off(self) -> bool:
        """Whether a gradient is no update by itself."""
        return self._state.is_off() or self._has_stepped()

    def note(self, argnums: Any, args: Any, result: Any, value: Any, met: list[Any]) -> None:
        """A gradient was taken; the value of the loss, if it was asked for, and what loss functions were given."""
        state, recorder = self._state, self._state.recorder
        if any(isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in tree_leaves(result)):
            return  # one within another training
        chosen = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        if self._training is None:
            where = nearest_place(sys._getframe(1))
            self._training = recorder.begin_training(recorder.next_training(where))
        if state.due:
            self._weights.add(fingerprint(leaf for n in chosen for leaf in tree_leaves(args[n])))
        given = [leaf for n, one in enumerate(args) if n not in chosen for leaf in tree_leaves(one) if is_plain(leaf)]
        for form, answer, target, loss, module in met:
            self._meet(form, _inside(answer), _inside(target), module, given)
            value = loss if value is None and loss.dim() == 0 else value
        if value is not None:
            recorder.add_loss(float(_inside(value)))
        state.note_look()
        state.end_update()

    def _meet(self, form: str, answer: Any, target: Any, module: Any, given: list[Any]) -> None:
        if not (is_plain(answer) and is_plain(target) and answer.dim()):
            return
        state, call, rows = self._state, None, len(answer)
        if module is not None:
            model = state.model_of(module)
            model.is_trained = True
            inputs = [one for one in given if one.shape[:1] == (rows,) and storage_of(one) != storage_of(target)]
            call = OuterCall(
                model, state.update, True, False, rows, [(str(n), HeldTensor.of(one)) for n, one in enumerate(inputs)]
            )
            call.outputs = [("0", HeldTensor.of(answer))]  # named as where the module answers by itself
        self._most_rows = max(self._most_rows, rows)
        meeting = Meeting(
            form=form, output=answer, target=target, source=PairSource.LOSS, call=call, update=state.update
        )
        self._meetings.train(meeting)

    def finish(self) -> None:
        """Tell whether the weights have moved."""
        if self._training is not None and self._weights:
            self._training.has_moved = self._state.recorder.have_moved(self._weights, self._most_rows)


def _inside(tensor: Any) -> Any:
    """The tensor with values in one of a transform's."""
    while isinstance(tensor, torch.Tensor) and torch._C._functorch.is_gradtrackingtensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor


def watch_functional(state: WatchState, functional: Functional) -> None:
    """Look at each gradient that `torch.func` takes by itself, within no other transform."""
    note = state.recorder.watching(functional.note)

    def passed_on(has_value: bool, go_on: Any, func: Any, argnums: Any = 0, *options: Any, **named: Any) -> Any:
        taken = go_on(func, argnums, *options, **named)

        @functools.wraps(taken)
        def asked(*args: Any, **kwargs: Any) -> Any:
            if functional.is_off or asks_for_rows(argnums, args, tree_leaves):
                return taken(*args, **kwargs)
            met = state.in_gradient = []
            try:
                result = taken(*args, **kwargs)
            finally:
                state.in_gradient = None
            gradient, value = result if has_value else (result, None)
            note(argnums, args, gradient, value[0] if isinstance(value, tuple) else value, met)
            state.recorder.end_update()  # what it calls may end the run: no watcher's own
            return result

        return asked

    watch_door(torch.func, "grad", functools.partial(passed_on, False))
    watch_door(torch.func, "grad_and_value", functools.partial(passed_on, True))
