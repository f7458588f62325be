"""What reaches the steps of optimizers and schedules, and the size of the gradient after each thing that changes it."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from trainwright.core import Place
from trainwright.seams.source.places import places_on_the_way, user_place
from trainwright.stages import GradientChange
from trainwright.stages.gradients import BACKWARD, BY_HAND, CLEARED, CLIPPED, STEP

# Two gradients that are equal up to a factor have a cosine of 1 up to rounding.
PARALLEL_WITHIN = 1e-4
# As many values of each show it.
MOST_COMPARED = 1_000_000
# Clipping that leaves more of a gradient changes nothing.
CLIPS_BELOW = 0.99
# The scale of a gradient scaler is a power of two; a smaller one hardly changes what clipping does.
LEAST_POWER = 2
# Two norms of the same gradients are equal up to rounding.
_SAME_WITHIN = 1e-4


@dataclass(kw_only=True)
class GateLog:
    """What reached the gates between two updates, in order."""

    calls: list[str] = field(default_factory=list)
    """step, zero_grad, schedule, backward."""
    places: dict[str, Place] = field(default_factory=dict)
    """The user's line of the first call of each kind; for backward, the last one before the first step, since others
    may belong to an adversarial attack."""
    lines: list[Place | None] = field(default_factory=list)
    """The user's line of each call."""
    ways: set[tuple[Place, ...]] = field(default_factory=set)
    """The user's lines that led to each backward pass before the first step: several are of losses that differ."""
    optimizers: list[Any] = field(default_factory=list)
    """The optimizers that were to step, each once."""
    stepped: list[Any] = field(default_factory=list)
    """The optimizer of each step among the calls."""
    rates: dict[int, list[Any]] = field(default_factory=dict)
    """By optimizer id: the groups' rates at its first step."""
    reached: dict[int, torch.Tensor] = field(default_factory=dict)
    """By parameter id: the gradient after the last backward pass, if it is recorded."""
    changes: list[GradientChange] = field(default_factory=list)
    """What happened to the gradients, if they are recorded."""
    wiped: set[int] = field(default_factory=set)
    """Ids of parameters whose gradient was gone when their optimizer was to step, if gradients are recorded."""
    wiped_at: Place | None = None
    """The user's line that cleared them with the optimizer's zero_grad."""
    as_reached: bool = False
    """Whether the first step was to use the gradients that the last backward pass left, possibly scaled, rather than
    gradients combined from several passes. Known if gradients are recorded."""

    @property
    def steps(self) -> int:
        """How many times an optimizer was to step."""
        return self.calls.count("step")


def _sample(gradient: torch.Tensor) -> torch.Tensor:
    """Evenly spaced values of a large gradient."""
    flat = (gradient.to_dense() if gradient.is_sparse else gradient).reshape(-1)
    return flat[:: flat.numel() // MOST_COMPARED + 1]


def _are_equal(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two gradients are equal; False if one is sparse, which torch does not compare."""
    return left.layout == right.layout == torch.strided and bool(torch.equal(left, right))


def _parallel(pairs: Sequence[tuple[torch.Tensor | None, torch.Tensor]]) -> bool:
    """Whether gradients equal others times a single number."""
    if not pairs or any(left is None for left, _ in pairs):
        return False
    if all(left is not None and _are_equal(left, right) for left, right in pairs):
        return any(bool(right.any()) for _, right in pairs)
    products = [0.0, 0.0, 0.0]
    for left, right in pairs:
        assert left is not None
        one, other = (_sample(t.detach()).double() for t in (left, right))
        for i, (x, y) in enumerate(((one, other), (one, one), (other, other))):
            products[i] += float((x * y).sum())
    both, first, second = products
    return first > 0 and second > 0 and both > (1 - PARALLEL_WITHIN) * (first * second) ** 0.5


def cleared_between(passed: GateLog) -> tuple[int, Place | None]:
    """How many backward passes of one line precede the first step with the gradients cleared between any two of them,
    and the line that clears them. 0 if they add up: gradients of other lines' passes may be discarded on purpose."""
    if "step" not in passed.calls or not passed.as_reached:
        return 0, None
    calls = list(zip(passed.calls, passed.lines))[: passed.calls.index("step")]
    backwards = [i for i, (kind, _) in enumerate(calls) if kind == "backward"]
    same = [i for i in backwards if calls[i][1] is not None and calls[i][1] == calls[backwards[-1]][1]]
    between = [[line for kind, line in calls[a:b] if kind == "zero_grad"] for a, b in itertools.pairwise(same)]
    return (len(same), between[0][0]) if between and all(between) else (0, None)


def clipped_early(changes: Sequence[GradientChange]) -> GradientChange | None:
    """The clipping of gradients that are not made yet, where those of the step are not clipped."""
    clips = [one for one in changes if one.kind == CLIPPED]
    is_made = bool(changes) and changes[-1].kind == STEP and changes[-1].before > 0
    return clips[0] if clips and is_made and not any(one.before for one in clips) else None


def unscaled_late(changes: Sequence[GradientChange]) -> tuple[GradientChange, GradientChange] | None:
    """Of the changes up to the first step: the clipping, and the division by a gradient scaler's scale right behind it."""
    if len(changes) < 3 or changes[-1].kind != STEP:
        return None
    clip, divided = changes[-3:-1]
    if clip.kind != CLIPPED or clip.left > CLIPS_BELOW or divided.kind != BY_HAND or not divided.after:
        return None
    power = math.log2(divided.before / divided.after)
    return (clip, divided) if round(power) >= LEAST_POWER and abs(power - round(power)) < _SAME_WITHIN else None


class Gates:
    """Notes what happens to gradients between real steps; the doors of the run call it.

    Args:
        parameters: those whose gradients are recorded.
        keep: also record them after each backward pass: a loop that does not step may clear them.
    """

    def __init__(self, parameters: Sequence[torch.Tensor], *, keep: bool) -> None:
        self.passed = GateLog()
        self._parameters = parameters
        self._keep = keep
        self._cleared_at: Place | None = None
        self._changes = _GradientChanges(parameters if keep else ())
        self._changes.found = self.passed.changes

    def join(self, model: nn.Module) -> None:
        """The parameters whose gradients are recorded are this model's."""
        self._parameters = self._changes.parameters = list(model.parameters())

    def begin_backward(self) -> None:
        """A backward pass begins."""
        if self._changes.look():  # by hand, which is clearing all the same
            self.passed.calls.append("zero_grad")
            self.passed.lines.append(None)
        self._changes.begin()
        self._note("backward")
        self._cleared_at = None

    def end_backward(self) -> None:
        """A backward pass has ended."""
        self._changes.end(BACKWARD)
        for parameter in self._parameters if self._keep else ():
            self.passed.reached.pop(id(parameter), None)
            if parameter.grad is not None:
                self.passed.reached[id(parameter)] = parameter.grad.detach().clone()

    def holds_any(self, parameters: Sequence[Any]) -> bool:
        """Whether the gradients of any of these are recorded."""
        return bool({id(p) for p in self._parameters} & {id(p) for p in parameters})

    def begin_change(self) -> None:
        """Gradients are about to be changed."""
        self._changes.begin()

    def end_change(self, kind: str) -> None:
        """Gradients were changed, by a call of this kind."""
        self._changes.end(kind)

    def begin_clear(self) -> None:
        """Gradients are about to be cleared."""
        self._note("zero_grad")
        self._cleared_at = user_place()
        self._changes.begin()

    def step(self, optimizer: Any) -> None:
        """An optimizer is about to step."""
        self._note("step")
        self._changes.begin()
        self._changes.end(STEP)
        self.passed.stepped.append(optimizer)
        if not any(one is optimizer for one in self.passed.optimizers):
            self.passed.optimizers.append(optimizer)
            self.passed.rates[id(optimizer)] = [group["lr"] for group in optimizer.param_groups]
            self._note_wiped(optimizer)

    def note_schedule(self) -> None:
        """A schedule has advanced."""
        self._note("schedule")

    def _note(self, kind: str) -> None:
        place = user_place()
        self.passed.calls.append(kind)
        self.passed.lines.append(place)
        if place is not None and kind == "backward" and not self.passed.steps:
            self.passed.places[kind] = place
            self.passed.ways.add(tuple(places_on_the_way(sys._getframe(1))))
        elif place is not None:
            self.passed.places.setdefault(kind, place)

    def _note_wiped(self, optimizer: Any) -> None:
        """Record whether all gradients for an optimizer's parameters are gone before its first step."""
        held = [p for g in optimizer.param_groups for p in g["params"] if id(p) in self.passed.reached]
        given = [p for p in held if bool(self.passed.reached[id(p)].any())]
        if len(self.passed.stepped) == 1:
            self.passed.as_reached = _parallel([(p.grad, self.passed.reached[id(p)]) for p in given])
        if given and not any(p.grad is not None and bool(p.grad.any()) for p in given):
            self.passed.wiped |= {id(p) for p in given}
            self.passed.wiped_at = self._cleared_at


class _GradientChanges:
    """Keeps what happened to the gradients of some parameters, in order.

    Args:
        parameters: those whose gradients count; without any, nothing is kept.
    """

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        self.found: list[GradientChange] = []
        self.parameters = parameters
        self._last: float | None = None

    def look(self) -> bool:
        """Keep a change that no known call made; returns whether it left nothing of a gradient."""
        if not self.parameters:
            return False
        before, now = self._last, self._norm()
        if before is None or abs(now - before) <= _SAME_WITHIN * before:
            return False
        self._add(CLEARED if now == 0 else BY_HAND, before, now, None)
        return now == 0

    def begin(self) -> None:
        """A known call is about to change the gradients."""
        self.look()
        self._last = self._norm() if self.parameters else None

    def end(self, kind: str) -> None:
        """The call is over."""
        if self.parameters:
            self._add(kind, self._last or 0.0, self._norm(), user_place())

    def _add(self, kind: str, before: float, after: float, where: Place | None) -> None:
        self.found.append(GradientChange(kind=kind, before=before, after=after, where=where))
        self._last = after

    def _norm(self) -> float:
        squares = 0.0
        for gradient in (p.grad.detach() for p in self.parameters if p.grad is not None):
            dense = gradient.coalesce().values() if gradient.is_sparse else gradient
            squares += float(dense.double().norm()) ** 2
        return math.sqrt(squares)
