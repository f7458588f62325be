"""Keeps calls of models that are trained, to ask those once more behind the run."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainwright.core import Place
from trainwright.look.last_weights import MOST_ROWS, ask_again, further_look
from trainwright.rehearsal.record_parts import LastingNoise
from trainwright.rehearsal.watch.torch.state import Model, OuterCall, WatchState
from trainwright.seams.failures.blame import tolerated
from trainwright.seams.listening.seen import seen

# Values of a call's inputs up to which it is kept for a probe, and models that are probed.
MOST_VALUES, MOST_MODELS = 2_000_000, 4
# Rows that a probe needs.
FEWEST_ROWS = 4
# So many rows come again, and this share of them behind another row: the first axis is no time.
FEWEST_AGAIN, SHUFFLED = 20, 0.5


@dataclass(eq=False)
class Asked:
    """A call that can be made again."""

    model: Model
    args: Any
    kwargs: Any
    rows: int
    built: Place | None
    """The user's line that built the model."""


class Probes:
    """Keeps the last evaluation call of each model, or a training call where there is none."""

    def __init__(self, state: WatchState) -> None:
        self._state = state
        self._asked: dict[int, Asked] = {}

    def note(self, call: OuterCall, args: Any, kwargs: Any) -> None:
        """A model was called."""
        known = self._asked.get(call.model.number)
        if known is not None and (call.grads or call.rows < min(known.rows, MOST_ROWS)):
            return
        if call.rows < FEWEST_ROWS or sum(int(np.prod(h.shape, dtype=np.int64)) for _, h in call.inputs) > MOST_VALUES:
            return
        self._asked.pop(call.model.number, None)
        self._asked[call.model.number] = Asked(
            call.model, args, kwargs, call.rows, seen().modules.get(call.model.ref())
        )
        if len(self._asked) > MOST_MODELS:
            self._asked.pop(next(iter(self._asked)))

    def finish(self) -> None:
        """Probe what was kept of the models that were trained. They are left as they were."""
        trained = {one.model for one in self._state.recorder.record.answers if one.trains}
        for asked in self._asked.values():
            module = asked.model.ref()
            if module is not None and (asked.model.is_trained or asked.model.number in trained):
                with tolerated():  # it may take no other inputs than those of the run
                    self._probe(module, asked)

    def _probe(self, module: Any, asked: Asked) -> None:
        record, number = self._state.recorder.record, asked.model.number
        is_shuffled = self._is_shuffled(number)
        found, noise = ask_again(module, asked.args, asked.kwargs, asked.rows, is_shuffled=is_shuffled)
        record.lasting_noise += [LastingNoise(model=number, operation=name, where=where) for name, where in noise]
        if found is not None:
            training = next((one for one in record.trainings if number in one.models), None)
            where = asked.built or (training.where if training is not None else None)
            look = further_look(record.looks, training.number if training is not None else 1, where, found)
            record.looks += [look] if look is not None else []

    def _is_shuffled(self, model: int) -> bool:
        """Whether training rows that come again do so behind other rows: a recurrence over them is none over time."""
        before: dict[int, int] = {}
        again: list[bool] = []
        for one in self._state.recorder.record.answers:
            keys = one.keys.tolist() if one.trains and one.model == model and one.keys is not None else []
            for last, key in itertools.pairwise(keys):
                again += [before[key] != last] if key in before else []
                before[key] = last
        return len(again) >= FEWEST_AGAIN and sum(again) > SHUFFLED * len(again)
