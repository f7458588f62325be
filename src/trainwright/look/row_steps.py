"""Steps on chosen rows of a set: a training's first step, made again behind the run with other rows in its batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from trainwright.adapters.data.odd_rows import RowStep
from trainwright.adapters.data.reading import as_mapping
from trainwright.adapters.torch.called_model import rows_of
from trainwright.core import Repair, Seam
from trainwright.look.replay import Replay
from trainwright.seams.failures.blame import failure_of, passed_on
from trainwright.seams.torch.tape import Tape


class RowSteps:
    """Steps with the weights that the training began with.

    Nothing is said of rows before a step on others has succeeded: this one may not be what makes them.

    Args:
        replay: makes the first step again; None: it cannot be made.
        names: the name in the step of each column of a batch.
        collate: forms a batch from items.
    """

    def __init__(self, replay: Replay | None, names: Mapping[str, str], collate: Callable[[list[Any]], Any]) -> None:
        self._replay, self._names, self._collate = replay, names, collate
        self._works: bool | None = None
        self._tape = _clean(replay.tapes[0]) if replay is not None else None

    def of_items(self, items: Sequence[Any]) -> RowStep | None:
        """A step on items of a set, which are read as they are asked for."""
        replay = self._replay
        if replay is None or self._tape is None or self._works is False:
            return None
        try:
            chosen = self._place(passed_on(self._collate, [items[i] for i in range(len(items))]))
            found = RowStep(loss=_make(replay, self._tape, chosen)) if chosen is not None else None
        except Exception as error:  # the script's own code, with other rows than it was given
            found = RowStep(failure=str(failure_of(error)))
        if self._works is None:
            self._works = found is not None and not found.failure
        return found if self._works else None

    def _place(self, batch: Any) -> dict[str, torch.Tensor] | None:
        """A batch by the names of the step; None where the step gets more than that."""
        assert self._replay is not None
        assert self._tape is not None
        view = self._replay.view(self._tape)
        rows = rows_of(view)
        chosen: dict[str, torch.Tensor] = {}
        for position, value in as_mapping(batch).items():
            name = self._names.get(position)
            if name is None or not isinstance(value, torch.Tensor):
                continue
            there = view[name]
            is_reshaped = value.numel() == len(value) * there[:1].numel()
            chosen[name] = (value.reshape(len(value), *there.shape[1:]) if is_reshaped else value).to(there)
        wanted = {k for k, v in view.items() if isinstance(v, torch.Tensor) and v.dim() and len(v) == rows}
        return chosen if wanted and wanted <= set(chosen) else None


def _clean(tape: Tape) -> Tape:
    """The step with numbers for NaN in its batch: the calls that are given other rows are found by the batch's values."""

    def clean(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            is_batch = value.is_floating_point() and not value.requires_grad and value.layout == torch.strided
            return torch.nan_to_num(value) if is_batch else value
        if type(value) is dict:
            return {key: clean(one) for key, one in value.items()}
        return type(value)(clean(one) for one in value) if type(value) in (list, tuple) else value

    calls = [replace(call, args=clean(call.args), kwargs=clean(call.kwargs)) for call in tape.calls]
    return replace(tape, calls=calls, targets=clean(tape.targets))


def _make(replay: Replay, tape: Tape, chosen: Mapping[str, torch.Tensor]) -> float:
    """The loss of a step with another batch, and the weights that the training began with."""
    other = Repair("other rows", Seam.BATCH, lambda call: call.replace(**chosen))
    replay.active.tried.append(other)
    try:
        return replay.loss_of(tape)
    finally:
        replay.active.tried.remove(other)
        replay.reset()
