"""The calls of a real step that lead from its batch to the tensor that is minimized, so that they can be made again.

A step is a list of calls outside of the model's modules: of the modules themselves, and of torch's functions whose result has a
gradient. What they are given is the batch and the script's weights, or the result of a call before. All else that the script
does, as Python numbers that it reads from a tensor, is not repeated: whoever makes the calls again compares their loss with the
step's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from trainwright.seams.state.snapshot import RandomState
from trainwright.seams.torch.loss import LOSSES
from trainwright.tensors.torch.objects import tensors_in

# A step of more calls is a computation of the script's own; batches of more values would take too much memory.
MOST_CALLS, MOST_KEPT_VALUES = 256, 4_000_000


@dataclass(frozen=True)
class TapeTensor:
    """The tensor that a call of the tape has made, by its number."""

    number: int


@dataclass(frozen=True)
class Noted:
    """One call."""

    function: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    first: int
    """The number of the first tensor that it makes."""


@dataclass
class Tape:
    """The calls of one step, in order."""

    calls: list[Noted] = field(default_factory=list)
    is_whole: bool = True
    """Whether all of the step is on it."""
    value: float | None = None
    """What the step minimized, once it was."""
    groups: list[dict[str, Any]] = field(default_factory=list)
    """The optimizer's groups, as it stepped."""
    clips: list[Callable[[], Any]] = field(default_factory=list)
    """Clip the gradients, as the step did."""
    random: RandomState = field(default_factory=RandomState)
    """At its begin."""
    targets: torch.Tensor | None = None
    """Those of the last loss call."""
    _numbers: dict[int, tuple[Any, int]] = field(default_factory=dict)
    _kept: dict[int, Any] = field(default_factory=dict)
    _count: int = 0
    _total: int = 0

    def note(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        """A call was made; without a gradient in its result it is of no account."""
        results = tensors_in(result)
        if self.value is not None or not self.is_whole or not any(one.requires_grad for one in results):
            return
        if function in LOSSES:
            targets = kwargs.get("target", args[1] if len(args) > 1 else None)
            self.targets = targets if isinstance(targets, torch.Tensor) else None
        noted = Noted(function, self._replace(tuple(args)), self._replace(dict(kwargs)), self._count)
        self.calls.append(noted)
        for one in results:
            self._numbers[id(one)] = one, self._count
            self._count += 1
        values = sum(one.numel() for one in self._kept.values() if not one.requires_grad)
        self.is_whole &= len(self.calls) <= MOST_CALLS and values <= MOST_KEPT_VALUES

    def end(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """A backward pass begins, with these arguments: of one tensor, without further ones."""
        known = self._numbers.get(id(args[0]))
        asks = any(value is not None for value in (*args[1:2], kwargs.get("gradient"), kwargs.get("inputs")))
        self.is_whole &= known is not None and args[0].numel() == 1 and not asks and self.value is None
        if self.is_whole and known is not None:
            self._total, self.value = known[1], float(args[0].detach())
        self._numbers, self._kept = {}, {}

    @property
    def classes(self) -> int:
        """How many classes its rows have; 0: they have none."""
        targets = self.targets
        is_class = targets is not None and targets.dim() == 1 and not targets.is_floating_point()
        return int(torch.unique(targets).numel()) if is_class else 0

    def make(self) -> torch.Tensor:
        """Make the calls again; the tensor that is minimized."""
        made: dict[int, torch.Tensor] = {}
        for call in self.calls:
            result = call.function(*_put_in(call.args, made), **_put_in(call.kwargs, made))
            made |= {call.first + number: one for number, one in enumerate(tensors_in(result))}
        return made[self._total]

    def _replace(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if (known := self._numbers.get(id(value))) is not None:
                return TapeTensor(known[1])
            self._kept[id(value)] = value
            self.is_whole &= value.is_leaf or not value.requires_grad  # or of a call that was not seen
            return value
        if type(value) is dict:
            return {key: self._replace(one) for key, one in value.items()}
        if type(value) in (list, tuple):
            return type(value)(self._replace(one) for one in value)
        return value


def _put_in(value: Any, made: Mapping[int, torch.Tensor]) -> Any:
    if isinstance(value, TapeTensor):
        return made[value.number]
    if type(value) is dict:
        return {key: _put_in(one, made) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_put_in(one, made) for one in value)
    return value
