"""Updates that a script makes itself, without an optimizer."""

from __future__ import annotations

import sys
from collections import deque
from typing import Any

import torch

from trainwright.core import Place
from trainwright.rehearsal.record import Training
from trainwright.rehearsal.watch.optimizers import Optimizers
from trainwright.rehearsal.watch.parameters import Parameters
from trainwright.rehearsal.watch.samples import fingerprint, is_plain
from trainwright.rehearsal.watch.state import State
from trainwright.seams.source.places import nearest_place

# Nodes of the graph that are looked through for weights, and weights.
MOST_NODES, MOST_LEAVES = 5000, 200


class Handmade:
    """Looks whether weights have changed since the last `backward`, as long as no optimizer has stepped."""

    def __init__(self, state: State, optimizers: Optimizers, parameters: Parameters) -> None:
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
        found = _leaves(roots)
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
        self._leaves, self._weights, self._where = leaves, weights, place(sys._getframe(1))
        return has_changed

    def finish(self) -> None:
        """Gradients of the same rows, taken again and again for weights that nothing changes, are a training that moves nothing;
        not where they are those of the rows themselves (an attack, salience)."""
        record = self._state.recorder.record
        most = max((len(one.labels) for one in record.answers if one.trains), default=0)
        comes_again = len(record.trained_keys) > most and max(record.trained_keys.values(), default=0) > 1
        if comes_again and not (record.updates or record.trainings or self._optimizers.has_stepped or self._of_rows):
            training = Training(number=1, kind="loop", begins=0, ends=self._taken, has_moved=False, where=self._where)
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
            number, where = len(recorder.record.trainings) + 1, nearest_place(sys._getframe(1))
            recorder.begin_training(
                Training(
                    number=number, kind="loop", begins=self._state.update, weights_before=self._weights, where=where
                )
            )


def _leaves(roots: list[Any]) -> list[Any]:
    """The leaves that gradients flow into."""
    todo = deque(root.grad_fn for root in roots if root.grad_fn is not None)
    seen = {id(node) for node in todo}
    found: list[Any] = []
    kept = list(todo)  # nodes are objects only as long as somebody holds them
    while todo and len(seen) < MOST_NODES and len(found) < MOST_LEAVES:
        node = todo.popleft()
        variable = getattr(node, "variable", None)
        if variable is not None and is_plain(variable):
            found.append(variable)
        for inner, _ in getattr(node, "next_functions", ()):
            if inner is not None and id(inner) not in seen:
                seen.add(id(inner))
                kept.append(inner)
                todo.append(inner)
    return found
