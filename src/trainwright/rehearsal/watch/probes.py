"""Probes after the run: what fewer other rows and exchanged inputs do to a model's answers."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from trainwright.adapters.torch.called_model import evaluating
from trainwright.rehearsal.record_parts import InputProbe
from trainwright.rehearsal.watch.samples import named_tensors
from trainwright.rehearsal.watch.state import OuterCall, WatchState

# Values of a call's inputs up to which it is kept for a probe, and models that are probed.
MOST_VALUES, MOST_MODELS = 2_000_000, 4
# Rows that a probe needs, and uses at most.
FEWEST_ROWS, MOST_ROWS = 4, 64
# Two answers to the same inputs that differ more than this are drawn at random: nothing is probed.
REPEATS = 1e-5


@dataclass(eq=False)
class Asked:
    """A call that can be made again."""

    model: weakref.ref[Any]
    number: int
    args: Any
    kwargs: Any
    rows: int


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
        self._asked[call.model.number] = Asked(call.model.ref, call.model.number, args, kwargs, call.rows)
        if len(self._asked) > MOST_MODELS:
            self._asked.pop(next(iter(self._asked)))

    def finish(self) -> None:
        """Probe what was kept. The models are left as they were."""
        for asked in self._asked.values():
            module = asked.model()
            if module is not None:
                self._probe(module, asked)

    def _probe(self, module: Any, asked: Asked) -> None:
        tensors = [t for _, t in named_tensors(asked.args, asked.kwargs)]
        if any(not t.dim() or t.shape[0] != asked.rows for t in tensors):
            return
        # What it raises is the model's own: it takes no other inputs than those of the run.
        with contextlib.suppress(Exception), evaluating(module):
            self._ask(module, asked)

    def _ask(self, module: Any, asked: Asked) -> None:
        def answers(change: Callable[[str, Any], Any]) -> list[Any]:
            args, kwargs = _changed(asked.args, asked.kwargs, change)
            return [t.float() for _, t in named_tensors((module(*args, **kwargs),), {}) if t.is_floating_point()]

        def answer(change: Callable[[str, Any], Any]) -> Any:
            return next((t for t in answers(change) if t.dim()), None)

        rows = min(asked.rows, MOST_ROWS)
        base, again = answer(lambda _, t: t[:rows]), answer(lambda _, t: t[:rows])
        if base is None or base.shape[0] != rows:
            return
        scale = float(base.abs().mean()) + 1e-9
        if not float((base - again).abs().max()) <= REPEATS * scale:
            return

        def add(change: str, other: Any, of: Any) -> None:
            if other is not None and other.shape == of.shape:
                effect = float((other - of).abs().mean()) / scale
                self._state.recorder.record.probes.append(
                    InputProbe(model=asked.number, change=change, effect=effect, rows=rows)
                )

        half = rows // 2
        add("rows", answer(lambda _, t: t[:half]), base[:half])
        add("earlier rows", answer(lambda _, t: t[half:rows]), base[half:])
        inputs = named_tensors(asked.args, asked.kwargs)
        whole = answers(lambda _, t: t[:rows])
        first = next((t for t in whole if t.dim()), None)
        for name, tensor in inputs:
            if bool((tensor[:rows] == tensor[:1]).all()) or _are_lengths(tensor, [t for _, t in inputs]):
                continue
            other = answers(functools.partial(_exchanged, name, rows))
            # An input that changes anything else that the model returns, such as a loss, is used: labels are.
            beside = [not torch.equal(t, before) for t, before in zip(other, whole, strict=True) if before is not first]
            if not any(beside):
                add(f"input {name}", next((t for t in other if t.dim()), None), base)


def _are_lengths(tensor: Any, inputs: list[Any]) -> bool:
    """Whether a number of each row may be the length of its tokens: a model that pads need not look at it."""
    tokens = [t for t in inputs if t.dim() == 2 and not t.is_floating_point()]
    return tensor.dim() == 1 and not tensor.is_floating_point() and any(int(tensor.max()) <= t.shape[1] for t in tokens)


def _exchanged(which: str, rows: int, name: str, tensor: Any) -> Any:
    """This input exchanged between the rows; the others as they are."""
    return tensor[:rows].flip(0) if name == which else tensor[:rows]


def _changed(args: Any, kwargs: Any, change: Callable[[str, Any], Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The same arguments with changed tensors, without labels."""

    def inner(name: str, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return change(name, value)
        if type(value) is dict:
            return {k: inner(f"{name}.{k}" if name else str(k), v) for k, v in value.items() if "label" not in str(k)}
        if type(value) in (list, tuple):
            return type(value)(inner(f"{name}[{i}]", v) for i, v in enumerate(value))
        return value

    changed = {k: inner(k, v) for k, v in kwargs.items() if "label" not in k}
    return tuple(inner(str(i), v) for i, v in enumerate(args)), changed
