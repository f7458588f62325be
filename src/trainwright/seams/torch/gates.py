"""Gates before the steps of optimizers and schedules, which can block or allow changes of weights and rates,
and the size of the gradient after each thing that changes it."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from trainwright.core.finding import Place
from trainwright.seams.listening.torch_patches import watching_backward, watching_clips
from trainwright.seams.loops.lifting import LoopLeft
from trainwright.seams.source.places import user_place
from trainwright.stages.gradients import BACKWARD, BY_HAND, CLEARED, CLIPPED, STEP, GradientChange

# A step that updates more often than this is really an epoch, and is cut short.
MOST_STEPS = 32
# Two gradients that are equal up to a factor have a cosine of 1 up to rounding.
PARALLEL_WITHIN = 1e-4
# As many values of each show it.
MOST_COMPARED = 1_000_000
# Two norms of the same gradients are equal up to rounding.
_SAME_WITHIN = 1e-4


@dataclass(kw_only=True)
class Passed:
    """What reached the gates during one run of a step, in order."""

    calls: list[str] = field(default_factory=list)
    """step, zero_grad, schedule, backward."""
    places: dict[str, Place] = field(default_factory=dict)
    """The user's line of the first call of each kind; for backward, the last one before the first step, since others
    may belong to an adversarial attack."""
    lines: list[Place | None] = field(default_factory=list)
    """The user's line of each call."""
    optimizers: list[Any] = field(default_factory=list)
    """The optimizers that were to step, each once."""
    stepped: list[Any] = field(default_factory=list)
    """The optimizer of each step among the calls."""
    rates: dict[int, list[Any]] = field(default_factory=dict)
    """By optimizer id: the groups' rates at its first step."""
    schedules: list[Any] = field(default_factory=list)
    gradients: dict[int, torch.Tensor] = field(default_factory=dict)
    """By parameter id: the gradient when the parameter's optimizer was to step."""
    began_clear: bool | None = None
    """Whether no gradient existed when the first backward pass began; None: there was no backward pass."""
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


def cleared_between(passed: Passed) -> tuple[int, Place | None]:
    """How many backward passes of one line precede the first step with the gradients cleared between any two of them,
    and the line that clears them. 0 if they add up: gradients of other lines' passes may be discarded on purpose."""
    if "step" not in passed.calls or not passed.as_reached:
        return 0, None
    calls = list(zip(passed.calls, passed.lines))[: passed.calls.index("step")]
    backwards = [i for i, (kind, _) in enumerate(calls) if kind == "backward"]
    same = [i for i in backwards if calls[i][1] is not None and calls[i][1] == calls[backwards[-1]][1]]
    between = [[line for kind, line in calls[a:b] if kind == "zero_grad"] for a, b in itertools.pairwise(same)]
    return (len(same), between[0][0]) if between and all(between) else (0, None)


class ScaledRate(float):
    """A learning rate that a repair or an experiment has scaled, and what a body makes of it by a factor.

    A rate that the body sets to a number of its own is a plain float: it is yet to be scaled.
    """

    def __mul__(self, other: Any) -> Any:
        return ScaledRate(float(self) * other) if isinstance(other, (int, float)) else float(self) * other

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return ScaledRate(float(self) / other) if isinstance(other, (int, float)) else float(self) / other


def mark_scaled(optimizer: Any, before: Sequence[Any]) -> list[float]:
    """Mark the groups' rates that are no longer what they were; returns what each was multiplied by."""
    factors = [float(group["lr"] / rate) if rate else 1.0 for group, rate in zip(optimizer.param_groups, before)]
    for group, factor in zip(optimizer.param_groups, factors):
        if factor != 1 and isinstance(group["lr"], (int, float)):
            group["lr"] = ScaledRate(group["lr"])
    return factors


def _scale_rates(optimizer: Any, factors: Sequence[float]) -> None:
    """Scale the rates that the body has set to numbers of its own."""
    for group, factor in zip(optimizer.param_groups, factors):
        if factor != 1 and isinstance(group["lr"], (int, float)) and not isinstance(group["lr"], ScaledRate):
            group["lr"] = ScaledRate(group["lr"] * factor)


class Gates:
    """Controls the steps of optimizers and schedules while it is active.

    Args:
        live: let optimizers step; False: record the gradients and change nothing.
        rate_share: multiplies each group's rate for the step.
        rate_factors: what repairs multiply the groups' rates by, by the optimizer's id; a body may set its own rates.
        parameters: more parameters whose gradients to record, besides the optimizers' own.
        passed: the record to add to; None: a new one.
        keep: also record the gradients after each backward pass: a body that does not step may clear them.
    """

    def __init__(
        self,
        optimizers: Iterable[Any],
        schedules: Iterable[Any],
        *,
        live: bool,
        rate_share: float = 1.0,
        rate_factors: Mapping[int, Sequence[float]] | None = None,
        parameters: Sequence[torch.Tensor] = (),
        passed: Passed | None = None,
        keep: bool = False,
    ) -> None:
        self.passed = passed if passed is not None else Passed()
        self._optimizers = list(optimizers)
        self._schedules = list(schedules)
        self._live = live
        self._rate_share = rate_share
        self._rate_factors = rate_factors or {}
        self._parameters = parameters
        self._keep = keep
        self._stepped = 0
        self._cleared_at: Place | None = None
        self._changes = _GradientChanges(parameters if keep else ())
        self._changes.found = self.passed.changes

    @contextmanager
    def closed(self) -> Iterator[Passed]:
        """Control the steps while the context lasts."""
        kept = [(o, dict(o.__dict__)) for o in (*self._optimizers, *self._schedules)]
        for optimizer in self._optimizers:
            optimizer.step = functools.partial(self._step, optimizer, optimizer.step)
            optimizer.zero_grad = functools.partial(self._clear, optimizer.zero_grad)
        for schedule in self._schedules:
            schedule.step = functools.partial(self._schedule, schedule)
        clear = nn.Module.zero_grad
        nn.Module.zero_grad = self._clearing(clear)
        try:
            with (
                watching_backward(self._note_begin, self._note_reached),
                watching_clips(self._changes.begin, self._note_clip),
            ):
                yield self.passed
        finally:
            nn.Module.zero_grad = clear
            for owner, attributes in kept:
                for name in ("step", "zero_grad"):
                    if name in attributes:
                        owner.__dict__[name] = attributes[name]
                    else:
                        owner.__dict__.pop(name, None)

    def _note(self, kind: str) -> None:
        place = user_place()
        self.passed.calls.append(kind)
        self.passed.lines.append(place)
        if place is not None and kind == "backward" and not self.passed.steps:
            self.passed.places[kind] = place
        elif place is not None:
            self.passed.places.setdefault(kind, place)

    def _note_begin(self) -> None:
        if self._changes.look():  # by hand, which is clearing all the same
            self.passed.calls.append("zero_grad")
            self.passed.lines.append(None)
        self._changes.begin()
        self._note("backward")
        self._cleared_at = None
        if self.passed.began_clear is None:
            held = [p for o in self._optimizers for g in o.param_groups for p in g["params"]]
            held = held if self._optimizers else list(self._parameters)  # manual updates
            dense = (p.grad.to_dense() if p.grad.is_sparse else p.grad for p in held if p.grad is not None)
            self.passed.began_clear = not any(bool(g.any()) for g in dense)

    def _note_reached(self) -> None:
        self._changes.end(BACKWARD)
        for parameter in self._parameters if self._keep else ():
            self.passed.reached.pop(id(parameter), None)
            if parameter.grad is not None:
                self.passed.reached[id(parameter)] = parameter.grad.detach().clone()

    def _step(self, optimizer: Any, original: Any, closure: Any = None, *args: Any, **kwargs: Any) -> Any:
        if self._stepped == MOST_STEPS:
            raise LoopLeft
        self._stepped += 1
        self._note("step")
        self._changes.begin()
        self._changes.end(STEP)
        self.passed.stepped.append(optimizer)
        if not any(o is optimizer for o in self.passed.optimizers):
            self.passed.optimizers.append(optimizer)
            self.passed.rates[id(optimizer)] = [g["lr"] for g in optimizer.param_groups]
            self._note_wiped(optimizer)
        if self._live:
            _scale_rates(optimizer, self._rate_factors.get(id(optimizer), ()))
            rates = [g["lr"] for g in optimizer.param_groups]
            for group, rate in zip(optimizer.param_groups, rates):
                group["lr"] = rate * self._rate_share
            try:
                return original(closure, *args, **kwargs) if closure is not None else original(*args, **kwargs)
            finally:
                for group, rate in zip(optimizer.param_groups, rates):
                    group["lr"] = rate
        answer = None
        if closure is not None:
            with torch.enable_grad():
                answer = closure()
        held = {id(p) for o in self._optimizers for g in o.param_groups for p in g["params"]}
        loose = (p for p in self._parameters if id(p) not in held)
        for parameter in (*loose, *(p for g in optimizer.param_groups for p in g["params"])):
            if parameter.grad is not None and id(parameter) not in self.passed.gradients:
                self.passed.gradients[id(parameter)] = self._kept(parameter)
        return answer

    def _kept(self, parameter: torch.Tensor) -> torch.Tensor:
        """A copy of a parameter's gradient: that of its last backward pass, if nothing has changed it since."""
        reached, gradient = self.passed.reached.get(id(parameter)), parameter.grad
        assert gradient is not None
        same = reached is not None and _are_equal(reached, gradient)
        return reached if reached is not None and same else gradient.detach().clone()

    def _note_clip(self, again: Any) -> None:
        self._changes.end(CLIPPED)

    def _note_wiped(self, optimizer: Any) -> None:
        """Record whether all gradients for an optimizer's parameters are gone before its first step."""
        held = [p for g in optimizer.param_groups for p in g["params"] if id(p) in self.passed.reached]
        given = [p for p in held if bool(self.passed.reached[id(p)].any())]
        if len(self.passed.stepped) == 1:
            self.passed.as_reached = _parallel([(p.grad, self.passed.reached[id(p)]) for p in given])
        if given and not any(p.grad is not None and bool(p.grad.any()) for p in given):
            self.passed.wiped |= {id(p) for p in given}
            self.passed.wiped_at = self._cleared_at

    def _clear(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        self._note("zero_grad")
        self._cleared_at = user_place()
        self._changes.begin()
        answer = original(*args, **kwargs)
        self._changes.end(CLEARED)
        return answer

    def _clearing(self, original: Any) -> Any:
        def zero_grad(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            return self._clear(original, module, *args, **kwargs)

        return zero_grad

    def _schedule(self, schedule: Any, *args: Any, **kwargs: Any) -> None:
        self._note("schedule")
        if not any(s is schedule for s in self.passed.schedules):
            self.passed.schedules.append(schedule)


class _GradientChanges:
    """Keeps what happened to the gradients of some parameters, in order.

    Args:
        parameters: those whose gradients count; without any, nothing is kept.
    """

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        self.found: list[GradientChange] = []
        self._parameters = parameters
        self._last: float | None = None

    def look(self) -> bool:
        """Keep a change that no known call made; returns whether it left nothing of a gradient."""
        if not self._parameters:
            return False
        before, now = self._last, self._norm()
        if before is None or abs(now - before) <= _SAME_WITHIN * before:
            return False
        self._add(CLEARED if now == 0 else BY_HAND, before, now, None)
        return now == 0

    def begin(self) -> None:
        """A known call is about to change the gradients."""
        self.look()
        self._last = self._norm() if self._parameters else None

    def end(self, kind: str) -> None:
        """The call is over."""
        if self._parameters:
            self._add(kind, self._last or 0.0, self._norm(), user_place())

    def _add(self, kind: str, before: float, after: float, where: Place | None) -> None:
        self.found.append(GradientChange(kind=kind, before=before, after=after, where=where))
        self._last = after

    def _norm(self) -> float:
        squares = 0.0
        for gradient in (p.grad.detach() for p in self._parameters if p.grad is not None):
            dense = gradient.coalesce().values() if gradient.is_sparse else gradient
            squares += float(dense.double().norm()) ** 2
        return math.sqrt(squares)
